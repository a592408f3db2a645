//! Commits whose outcome nobody hears: a proxy that cuts the connection at the worst moment.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use fencepost_ledger::{RequestId, Trigger, Verdict};
use fencepost_store::{IssueRead, Store};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixListener, UnixStream},
};
use uuid::Uuid;

use crate::world::{World, answer, content, digest};

/// What the proxy waits for, and whether it passes it on before it cuts.
#[derive(Clone)]
struct Trap {
    needle: Vec<u8>,
    forward: bool,
}

type Armed = Arc<Mutex<Option<Trap>>>;

trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

struct Proxy {
    folder: PathBuf,
    armed: Armed,
    pool: PgPool,
}

impl Proxy {
    /// A proxy before the database of `pool`, and a pool through it.
    async fn before(pool: &PgPool) -> Self {
        let upstream = pool.connect_options().as_ref().clone();
        let folder = std::env::temp_dir().join(format!("fencepost-{}", Uuid::new_v4().simple()));
        std::fs::create_dir(&folder).unwrap();
        let listener =
            UnixListener::bind(folder.join(format!(".s.PGSQL.{}", upstream.get_port()))).unwrap();
        let armed = Armed::default();
        let through = upstream.clone().socket(&folder);
        let trap = armed.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, upstream.clone(), trap.clone()));
            }
        });
        let pool = PgPoolOptions::new()
            .test_before_acquire(false)
            .connect_with(through)
            .await
            .unwrap();
        Self {
            folder,
            armed,
            pool,
        }
    }

    fn arm(&self, needle: &[u8], forward: bool) {
        *self.armed.lock().unwrap() = Some(Trap {
            needle: needle.to_vec(),
            forward,
        });
    }

    /// Whether the trap has not closed yet.
    fn is_armed(&self) -> bool {
        self.armed.lock().unwrap().is_some()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn dial(options: &PgConnectOptions) -> Box<dyn Wire> {
    let folder = options.get_socket().cloned().or_else(|| {
        options
            .get_host()
            .starts_with('/')
            .then(|| PathBuf::from(options.get_host()))
    });
    match folder {
        Some(folder) => {
            let path = folder.join(format!(".s.PGSQL.{}", options.get_port()));
            Box::new(UnixStream::connect(path).await.unwrap())
        }
        None => Box::new(
            TcpStream::connect((options.get_host(), options.get_port()))
                .await
                .unwrap(),
        ),
    }
}

async fn relay(mut client: UnixStream, upstream: PgConnectOptions, armed: Armed) {
    let mut server = dial(&upstream).await;
    let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                let sent = &up[..length];
                let caught = {
                    let mut armed = armed.lock().unwrap();
                    armed.take_if(|trap| sent.windows(trap.needle.len()).any(|w| w == trap.needle))
                };
                if let Some(trap) = caught {
                    if trap.forward {
                        server.write_all(sent).await.unwrap();
                        // Answered, so it is done; the answer goes nowhere.
                        assert_ne!(server.read(&mut down).await.unwrap(), 0);
                    }
                    return;
                }
                server.write_all(sent).await.unwrap();
            }
            read = server.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&down[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn settled_over_a_broken_commit(pool: PgPool, forward: bool) {
    let proxy = Proxy::before(&pool).await;
    let world = World::new(pool).await;
    let (a, b) = (
        world.active("docs://a").await,
        world.active("docs://b").await,
    );
    world.read(a, content(1)).await;
    world.read(b, content(1)).await;
    let (read_a, read_b) = (world.issue(a).await, world.issue(b).await);
    let store = Store::with_pool(proxy.pool.clone(), Uuid::new_v4());
    proxy.arm(b"COMMIT", forward);
    let (accepted, unchanged) = tokio::join!(
        store.accept_resource_version(answer(read_a, content(2))),
        store.accept_resource_version(answer(read_b, content(1)))
    );
    assert!(!proxy.is_armed(), "the commit was cut");
    let (accepted, unchanged) = (accepted.unwrap(), unchanged.unwrap());
    assert_eq!(
        (accepted.verdict, accepted.previous),
        (Verdict::Accepted, Some(digest(1)))
    );
    assert_eq!(
        (unchanged.verdict, unchanged.previous),
        (Verdict::Unchanged, Some(digest(1)))
    );
    assert_eq!(
        world.count("select count(*) from resource_version").await,
        3
    );
    assert_eq!(world.count("select count(*) from outbox").await, 3);
    let again = store
        .accept_resource_version(answer(read_a, content(2)))
        .await
        .unwrap();
    assert_eq!(
        again.verdict,
        Verdict::AlreadySettled,
        "a new call is a new call"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_commit_whose_answer_is_lost_is_looked_up(pool: PgPool) {
    settled_over_a_broken_commit(pool, true).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_commit_that_never_arrived_is_made_again(pool: PgPool) {
    settled_over_a_broken_commit(pool, false).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn an_issued_read_whose_answer_is_lost_keeps_its_ordinal(pool: PgPool) {
    let proxy = Proxy::before(&pool).await;
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let store = Store::with_pool(proxy.pool.clone(), Uuid::new_v4());
    for forward in [true, false] {
        let request = Uuid::now_v7();
        proxy.arm(request.as_bytes(), forward);
        let issued = store
            .issue_read(IssueRead {
                request: RequestId::new(request),
                resource: watched.id,
                generation: watched.generation,
                session: world.session.generation,
                trigger: Trigger::Poll,
            })
            .await
            .unwrap();
        assert!(!proxy.is_armed(), "the statement was cut");
        let last = world.facts(watched.id).await.last_issued_ordinal;
        assert_eq!(issued.ordinal.get(), u64::try_from(last).unwrap());
    }
    assert_eq!(world.facts(watched.id).await.last_issued_ordinal, 2);
    assert_eq!(world.count("select count(*) from read").await, 2);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_killed_backend_costs_nothing(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let watched = world.active("docs://a").await;
    let reads = [world.issue(watched).await, world.issue(watched).await];
    for (read, n) in reads.into_iter().zip(1..) {
        sqlx::query(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
        )
        .execute(&pool)
        .await
        .unwrap();
        assert_eq!(
            world.settle(read, content(n)).await.verdict,
            Verdict::Accepted
        );
    }
    assert_eq!(
        world.count("select count(*) from resource_version").await,
        2
    );
}

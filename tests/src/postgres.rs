//! A private Postgres for tests, and a fresh database in it for each.
//!
//! `FENCEPOST_TEST_DATABASE_URL` names a server to use; without it a cluster is made from the installed binaries in a temporary
//! folder, under a user who is not root, and ends with the last test that uses it.

use std::{
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::Signal,
    unistd::{Gid, Uid, User, chown, geteuid},
};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::sync::Mutex;
use url::Url;
use uuid::Uuid;

use crate::{process::Process, report, wait};

/// Creating a cluster takes about a second; a busy machine may need many.
const START_LIMIT: Duration = Duration::from_mins(1);

/// An immediate shutdown needs milliseconds.
const STOP_LIMIT: Duration = Duration::from_secs(5);

static SHARED: Mutex<Weak<Postgres>> = Mutex::const_new(Weak::new());

pub struct Postgres {
    /// The maintenance database.
    url: Url,
    cluster: Option<Cluster>,
}

struct Cluster {
    process: Process,
    folder: TempDir,
}

/// A database of one test. Dropped with it where the server outlives the test.
pub struct Database {
    pub url: String,
    name: String,
    server: Arc<Postgres>,
}

impl Postgres {
    /// The server that the tests of this process share.
    pub async fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().await;
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let started = Arc::new(match std::env::var("FENCEPOST_TEST_DATABASE_URL") {
            Ok(url) => Self {
                url: Url::parse(&url).expect("FENCEPOST_TEST_DATABASE_URL is a postgres:// URL"),
                cluster: None,
            },
            Err(_) => {
                Self::start(&[
                    "fsync=off",
                    "synchronous_commit=off",
                    "full_page_writes=off",
                ])
                .await
            }
        });
        *shared = Arc::downgrade(&started);
        started
    }

    /// A cluster of its own, with these settings and otherwise the defaults: for benches, and for tests that stop the server.
    ///
    /// # Panics
    ///
    /// When there are no Postgres binaries, saying how to install them; when the cluster does not start, with its output.
    pub async fn start(settings: &[&str]) -> Self {
        let binaries = binaries();
        let user = unprivileged();
        let folder = tempfile::Builder::new()
            .prefix("fencepost-pg-")
            .tempdir()
            .expect("a temporary folder can be made");
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).expect("root can give a folder away");
        }
        let data = folder.path().join("data");
        let mut initdb = Command::new(binaries.join("initdb"));
        initdb.arg("--pgdata").arg(&data);
        initdb.args([
            "--username=fencepost",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        run_as(&mut initdb, user, folder.path());
        let made = initdb.output().expect("initdb can be run");
        assert!(
            made.status.success(),
            "initdb failed: {}",
            String::from_utf8_lossy(&made.stderr)
        );

        let port = free_port();
        let process = serve(folder.path(), port, settings).await;
        let url = Url::parse(&format!("postgres://fencepost@127.0.0.1:{port}/postgres"))
            .expect("this is a URL");
        Self {
            url,
            cluster: Some(Cluster { process, folder }),
        }
    }

    /// Stops a cluster of its own and starts it again as a standby, which answers questions and is never promoted.
    ///
    /// # Panics
    ///
    /// When it is not a cluster of its own, or does not start.
    pub async fn into_standby(mut self) -> Self {
        let port = self.url.port().expect("a cluster has a port");
        let cluster = self.cluster.as_mut().expect("a cluster of its own");
        cluster.process.signal(Signal::SIGINT);
        cluster.process.ended(START_LIMIT).await;
        let folder = cluster.folder.path();
        std::fs::write(folder.join("data/standby.signal"), "").expect("the data folder is there");
        cluster.process = serve(folder, port, &["wal_level=replica"]).await;
        self
    }

    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// A new, empty database.
    pub async fn database(self: &Arc<Self>) -> Database {
        let name = format!("fencepost_test_{}", Uuid::new_v4().simple());
        self.execute(&format!("CREATE DATABASE {name}")).await;
        let mut url = self.url.clone();
        url.set_path(&name);
        Database {
            url: url.into(),
            name,
            server: Arc::clone(self),
        }
    }

    async fn execute(&self, statement: &str) {
        let mut connection = wait::until("a connection to Postgres", START_LIMIT, async || {
            PgConnection::connect(self.url.as_str()).await
        })
        .await;
        // The statement is put together from names made here, not from input.
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned()))
            .execute(&mut connection)
            .await;
        assert!(done.is_ok(), "{statement}: {done:?}");
        drop(connection.close().await);
    }
}

impl Database {
    /// A fresh database on the shared server.
    pub async fn fresh() -> Self {
        report::real("a database of a real Postgres");
        Postgres::shared().await.database().await
    }

    /// Cuts every connection to this database and lets none in, until [`Database::mend`].
    pub async fn cut(&self) {
        let name = &self.name;
        self.server
            .execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
            .await;
        self.server
            .execute(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            ))
            .await;
    }

    /// Makes the transactions of new connections read-only, as a provider does whose disk runs full, and ends the old ones.
    pub async fn forbid_writes(&self) {
        let name = &self.name;
        self.server
            .execute(&format!(
                "ALTER DATABASE {name} SET default_transaction_read_only = on"
            ))
            .await;
        self.server
            .execute(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            ))
            .await;
    }

    /// Takes [`Database::forbid_writes`] back. Connections that are open stay read-only, as Postgres has it.
    pub async fn allow_writes(&self) {
        let name = &self.name;
        self.server
            .execute(&format!(
                "ALTER DATABASE {name} RESET default_transaction_read_only"
            ))
            .await;
    }

    /// Lets connections in again.
    pub async fn mend(&self) {
        let name = &self.name;
        self.server
            .execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
            .await;
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.server.cluster.is_some() {
            return;
        }
        let server = Arc::clone(&self.server);
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // A drop cannot wait on the runtime it runs in, so the statement gets one of its own.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(server.execute(&statement));
        });
        drop(dropped.join());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Immediate shutdown: the postmaster takes its backends with it, which a kill of it would not.
        self.process.signal(Signal::SIGQUIT);
        let start = Instant::now();
        while self.process.status().is_none() && start.elapsed() < STOP_LIMIT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The server of the cluster in `folder`, once it answers.
async fn serve(folder: &Path, port: u16, settings: &[&str]) -> Process {
    let mut command = Command::new(binaries().join("postgres"));
    command
        .arg("-D")
        .arg(folder.join("data"))
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k"])
        .arg(folder);
    for setting in ["max_connections=200"].iter().chain(settings) {
        command.args(["-c", setting]);
    }
    run_as(&mut command, unprivileged(), folder);
    let mut process = Process::start("postgres", &mut command);
    process
        .line("ready", START_LIMIT, |line| {
            // A primary's words, and a standby's.
            let ready = [
                "ready to accept connections",
                "ready to accept read-only connections",
            ];
            ready.iter().any(|words| line.contains(words)).then_some(())
        })
        .await;
    process
}

/// Postgres refuses to run as root; the user of the distribution's package, or nobody, runs it then.
fn unprivileged() -> Option<(Uid, Gid)> {
    if !geteuid().is_root() {
        return None;
    }
    let found = ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| User::from_name(name).ok().flatten());
    let user = found.expect("there is a user named postgres or nobody to run Postgres as");
    Some((user.uid, user.gid))
}

fn run_as(command: &mut Command, user: Option<(Uid, Gid)>, folder: &Path) {
    if let Some((uid, gid)) = user {
        command.uid(uid.as_raw()).gid(gid.as_raw());
    }
    command
        .current_dir(folder)
        .env_remove("PGDATA")
        .env_remove("PGPORT")
        .env_remove("PGHOST");
}

/// The newest installed version that has both programs.
fn binaries() -> PathBuf {
    let mut candidates: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    candidates.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    let on_path: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let found = candidates
        .into_iter()
        .map(|(_, path)| path)
        .chain(on_path)
        .find(|folder| {
            ["initdb", "postgres"]
                .iter()
                .all(|program| is_program(&folder.join(program)))
        });
    found.expect("no Postgres binaries; run scripts/install.sh, or set FENCEPOST_TEST_DATABASE_URL")
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A loopback port that was free a moment ago.
///
/// # Panics
///
/// When there is none.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener
        .local_addr()
        .expect("a bound listener has an address")
        .port()
}

//! What Postgres allows: issue and acceptance of a new version each, without a server or an engine.

use std::time::{Duration, Instant};

use fencepost_ledger::{Digest, Generation, RequestId, ResourceId, Trigger, Verdict};
use fencepost_store::{
    AnswerBody, DEFAULT_CONNECTIONS, IssueRead, Mode, Published, ReadAnswer, ResourceSpec,
    ServerRow, SessionKey, Store, StoreConfig, SubjectRow,
};
use futures::future::join_all;
use sqlx::Connection as _;
use uuid::Uuid;

use crate::sizes::{IN_FLIGHT, Sizes, TEXT};

/// Longer than any run.
const LEASE: Duration = Duration::from_hours(1);

/// Versions of the measurement one at a time.
const LONE: u64 = 200;

pub struct Alone {
    /// With [`IN_FLIGHT`] tasks.
    pub a_second: f64,
    /// With one.
    pub lone_a_second: f64,
}

#[derive(Clone, Copy)]
struct Watched {
    session: SessionKey,
    id: ResourceId,
    generation: Generation,
}

/// The same number of resources and of versions as the whole path has.
pub async fn run(database_url: &str, sizes: Sizes) -> Alone {
    let store = Store::connect(StoreConfig {
        database_url: database_url.to_owned(),
        max_connections: DEFAULT_CONNECTIONS,
        replica: Uuid::now_v7(),
    })
    .await
    .unwrap();
    store.migrate().await.unwrap();
    let watched = watch(&store, sizes.all()).await;
    // First versions, which the whole path has before it is measured too.
    versions(&store, &watched, 0..1).await;
    let rounds = u64::try_from(sizes.rounds).unwrap();
    let start = Instant::now();
    versions(&store, &watched, 1..rounds + 1).await;
    let a_second = sizes.versions() as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for round in rounds + 1..=rounds + LONE {
        version(&store, watched[0], round).await;
    }
    Alone {
        a_second,
        lone_a_second: LONE as f64 / start.elapsed().as_secs_f64(),
    }
}

/// Version and durability of the Postgres, in one line.
pub async fn settings(url: &str) -> String {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    let settings: Vec<(String, String)> = sqlx::query_as(
        "select name, current_setting(name) from unnest(array['server_version', 'fsync', 'synchronous_commit',
             'full_page_writes', 'wal_sync_method', 'shared_buffers', 'max_wal_size']) as name",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let settings: Vec<_> = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!("Postgres {}", settings.join(" "))
}

async fn watch(store: &Store, count: usize) -> Vec<Watched> {
    let (server, subject) = (Uuid::now_v7(), Uuid::now_v7());
    let objects = Published {
        servers: vec![ServerRow {
            uid: server,
            namespace: "bench".into(),
            name: "server".into(),
            address: "http://bench/mcp".into(),
            protocol: "Auto".into(),
        }],
        subjects: vec![SubjectRow {
            uid: subject,
            namespace: "bench".into(),
            name: "subject".into(),
            anonymous: false,
            revoked: false,
        }],
        ..Published::default()
    };
    store.publish(&objects).await.unwrap();
    let lease = store.acquire_lease(server, subject, LEASE).await.unwrap();
    let session = SessionKey {
        server,
        subject,
        generation: lease.unwrap(),
    };
    let specs: Vec<_> = (0..count).map(spec).collect();
    let rows = store.put_resources(&session, &specs).await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let opened = store.open_generations(&session, &ids).await.unwrap();
    let watched: Vec<_> = ids
        .into_iter()
        .zip(opened)
        .map(|(id, generation)| Watched {
            session,
            id,
            generation: generation.unwrap(),
        })
        .collect();
    let items: Vec<_> = watched
        .iter()
        .map(|w| (w.id, w.generation, Mode::Subscribe))
        .collect();
    let active = store.activate(&session, &items).await.unwrap();
    assert!(active.into_iter().all(|active| active));
    watched
}

fn spec(n: usize) -> ResourceSpec {
    let uri = format!("bench://{n}");
    ResourceSpec {
        uri_normal: Some(uri.clone()),
        uri,
        watches: vec!["bench/watch".into()],
        mode: Mode::Subscribe,
        cohort: true,
        max_staleness: Duration::from_hours(1),
        read_interval: Duration::from_mins(50),
        store_content: true,
        keep_versions: 10,
    }
}

/// A version of each resource in each round, by [`IN_FLIGHT`] tasks with a share of the resources each.
async fn versions(store: &Store, watched: &[Watched], rounds: std::ops::Range<u64>) {
    let tasks = (0..IN_FLIGHT.min(watched.len())).map(|task| {
        let share: Vec<_> = watched
            .iter()
            .copied()
            .skip(task)
            .step_by(IN_FLIGHT)
            .collect();
        let (store, rounds) = (store.clone(), rounds.clone());
        tokio::spawn(async move {
            for round in rounds {
                for watched in &share {
                    version(&store, *watched, round).await;
                }
            }
        })
    });
    for ended in join_all(tasks).await {
        ended.unwrap();
    }
}

async fn version(store: &Store, watched: Watched, round: u64) {
    let request = RequestId::new(Uuid::now_v7());
    let issued = store
        .issue_read(IssueRead {
            request,
            resource: watched.id,
            generation: watched.generation,
            session: watched.session.generation,
            trigger: Trigger::Notification,
        })
        .await
        .unwrap();
    // As digests are: spread, and another for each version.
    let mut digest = [0; 32];
    digest[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    digest[16..24].copy_from_slice(&round.to_be_bytes());
    let settled = store
        .accept_resource_version(ReadAnswer {
            request,
            resource: watched.id,
            ordinal: issued.ordinal,
            body: AnswerBody::Content {
                digest: Digest::new(digest),
                mime_type: Some("text/plain".into()),
                size: TEXT.len() as u64,
                bytes: Some(TEXT.as_bytes().to_vec()),
                server_version: "bench/1".into(),
            },
            reason: None,
            detail: None,
        })
        .await
        .unwrap();
    assert_eq!(settled.verdict, Verdict::Accepted);
}

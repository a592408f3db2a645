//! The whole path: change and notification at the server, until the version is accepted in the ledger.
//!
//! What must hold at the end: one version for each change and none besides, in the counters and in the database; each receipt
//! once; as many reads by Fencepost's count as by the server's.

use std::time::{Duration, Instant};

use fencepost_tests::faulty::FaultyServer;
use sqlx::PgPool;

use crate::{
    cpu::{Meter, Spent},
    dev::{self, Dev},
    sizes::{Sizes, TEXT},
};

/// After the last version: longer than the widest quiet window and a read, so that what is still owed is read and counted.
const SETTLE: Duration = Duration::from_secs(2);

/// How a server that repeats itself tells of one change: `each` times in a row, and all of that again `APART` later.
#[derive(Clone, Copy)]
pub struct Manner {
    each: usize,
    passes: usize,
}

/// Longer than the quiet window that a session starts with: what is so late costs reads until the window has grown.
const APART: Duration = Duration::from_millis(50);

impl Manner {
    pub const ONCE: Self = Self { each: 1, passes: 1 };
    pub const IN_A_ROW: Self = Self { each: 3, passes: 1 };
    pub const APART: Self = Self { each: 1, passes: 3 };

    fn times(self) -> usize {
        self.each * self.passes
    }
}

pub struct Whole {
    /// Accepted versions.
    pub a_second: f64,
    /// Reads that notifications caused, per version.
    pub amplification: f64,
    pub cpu: Spent,
}

pub async fn run(database_url: &str, server: &FaultyServer, sizes: Sizes, manner: Manner) -> Whole {
    // Sessions share the URIs: a notification is told to each of them.
    let uris: Vec<String> = (0..sizes.resources)
        .map(|n| format!("bench://{}x{}/{n}", manner.each, manner.passes))
        .collect();
    server.set_many(uris.iter().map(|uri| (uri, TEXT)));
    let mut manifests = dev::server(&server.url());
    for n in 0..sizes.sessions {
        let name = format!("s{n}");
        manifests += &dev::subject(&name);
        manifests += &dev::watch(&name, &name, &uris);
    }
    let reads_before = server.counters().reads;
    let dev = Dev::start(database_url, &manifests).await;
    dev.accepted(sizes.all()).await;

    let pool = PgPool::connect(database_url).await.unwrap();
    let meter = Meter::start(dev.pid(), &pool).await;
    let start = Instant::now();
    for round in 1..=sizes.rounds {
        let text = format!("{round}: {TEXT}");
        server.set_many(uris.iter().map(|uri| (uri, &text)));
        for pass in 0..manner.passes {
            if pass > 0 {
                tokio::time::sleep(APART).await;
            }
            for uri in &uris {
                let told = server.notify_times(uri, manner.each);
                assert_eq!(told, sizes.sessions, "streams told");
            }
        }
        dev.accepted(sizes.all() * (round + 1)).await;
    }
    let took = start.elapsed();
    let cpu = meter.stop(took, sizes.versions());
    tokio::time::sleep(SETTLE).await;

    let amplification = counted(&dev, server, sizes, manner.times(), reads_before).await;
    stored(&pool, sizes).await;
    pool.close().await;
    dev.stop().await;
    Whole {
        a_second: sizes.versions() as f64 / took.as_secs_f64(),
        amplification,
        cpu,
    }
}

/// Checks the counters against one another; gives reads a version.
async fn counted(dev: &Dev, server: &FaultyServer, sizes: Sizes, times: usize, before: u64) -> f64 {
    let (first, changes) = (sizes.all(), sizes.versions());
    let versions = dev.versions().await;
    assert_eq!(versions, first + changes, "versions lost or made up");

    let by_notification = r#"trigger="Notification""#;
    let count =
        async |labels: &[&str]| -> u64 { dev.metric("fencepost_reads_total", labels).await };
    let all = count(&[]).await;
    let asked = server.counters().reads - before;
    assert_eq!(all, asked, "reads by Fencepost's count and by the server's");
    let reads = count(&[by_notification]).await;
    let brought = count(&[by_notification, r#"outcome="accepted""#]).await;
    assert!(
        brought <= changes as u64,
        "{brought} versions of {changes} changes"
    );

    let told =
        async |kind: &str| -> usize { dev.metric("fencepost_notifications_total", &[kind]).await };
    let (updated, gaps) = (told(r#"kind="updated""#).await, told(r#"kind="gap""#).await);
    // Fewer may be counted only where a gap stands for them.
    assert!(
        updated == changes * times || gaps > 0,
        "{updated} of {} notifications and no gap",
        changes * times
    );

    let ratio = reads as f64 / brought as f64;
    let shown: f64 = dev.metric("fencepost_read_amplification_ratio", &[]).await;
    assert!(
        (shown - ratio).abs() < 1e-6,
        "the metric says {shown}, the counters {ratio}"
    );
    ratio
}

/// Checks the database.
async fn stored(pool: &PgPool, sizes: Sizes) {
    let each = i64::try_from(sizes.rounds + 1).unwrap();
    let all = i64::try_from(sizes.all()).unwrap();
    let count = async |query: &'static str| -> i64 {
        sqlx::query_scalar(query)
            .bind(each)
            .fetch_one(pool)
            .await
            .unwrap()
    };
    for (what, query, wanted) in [
        (
            "resources with each version",
            "select count(*) from resource where version_count = $1",
            all,
        ),
        (
            "versions",
            "select count(*) from resource_version where $1 > 0",
            all * each,
        ),
        (
            "announcements",
            "select count(*) from outbox where kind = 'resource.accepted' and $1 > 0",
            all * each,
        ),
        (
            "reads without a receipt",
            "select count(*) from read where outcome is null and $1 > 0",
            0,
        ),
        (
            "resources still dirty",
            "select count(*) from resource where dirty_since is not null and $1 > 0",
            0,
        ),
    ] {
        assert_eq!(count(query).await, wanted, "{what}");
    }
}

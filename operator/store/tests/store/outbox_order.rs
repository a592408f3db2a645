//! Outbox positions become visible in their order, so that no reader passes an open transaction.

use std::time::Duration;

use fencepost_ledger::Verdict;
use fencepost_store::OUTBOX_CHANNEL;
use futures::future::join_all;
use sqlx::{Connection, PgPool, postgres::PgListener};

use crate::world::{World, answer, content};

/// The number in `advisory::OUTBOX`, written again: whoever changes it there breaks mixed versions.
const OUTBOX_LOCK: i64 = 0x6665_6e63_6500_0001;

/// None of the waits below takes a second where things are as they should be.
const LIMIT: Duration = Duration::from_secs(20);

#[sqlx::test(migrations = "../migrations")]
async fn no_position_is_given_out_past_an_open_transaction(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let (a, b, c) = (
        world.active("docs://a").await,
        world.active("docs://b").await,
        world.active("docs://c").await,
    );
    world.read(c, content(1)).await;
    let (read_a, read_b, read_c) = (
        world.issue(a).await,
        world.issue(b).await,
        world.issue(c).await,
    );

    // A writer that has drawn its position and has not committed yet.
    let mut open = sqlx::PgConnection::connect_with(&pool.connect_options())
        .await
        .unwrap();
    let mut tx = open.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(OUTBOX_LOCK)
        .execute(&mut *tx)
        .await
        .unwrap();
    let held: i64 = sqlx::query_scalar("select nextval('outbox_position')")
        .fetch_one(&mut *tx)
        .await
        .unwrap();

    let (one, two) = (world.store.clone(), world.other_replica());
    let flushes = tokio::spawn(async move {
        tokio::join!(
            one.accept_resource_version(answer(read_a, content(1))),
            two.accept_resource_version(answer(read_b, content(1)))
        )
    });
    // What announces nothing does not wait for it.
    let third = world.other_replica();
    let unchanged = third
        .accept_resource_version(answer(read_c, content(1)))
        .await
        .unwrap();
    assert_eq!(unchanged.verdict, Verdict::Unchanged);
    // Both flushes stand before the lock; nothing beyond the open position is visible.
    let both_wait = async {
        let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())";
        while world.count(waiting).await < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, both_wait)
        .await
        .expect("both flushes wait for the open transaction");
    assert!(world.count("select max(position) from outbox").await < held);
    tx.commit().await.unwrap();
    let (a, b) = flushes.await.unwrap();
    assert_eq!(
        (a.unwrap().verdict, b.unwrap().verdict),
        (Verdict::Accepted, Verdict::Accepted)
    );
    assert!(
        world
            .count("select min(position) from outbox where position > 1")
            .await
            > held
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_reader_that_follows_the_head_misses_nothing(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let mut fleet = Vec::new();
    for n in 0..8 {
        fleet.push(world.active(&format!("docs://{n}")).await);
    }
    let reader = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 160 {
            let last = seen.last().copied().unwrap_or(0);
            let new: Vec<i64> = sqlx::query_scalar(
                "select position from outbox where position > $1 order by position",
            )
            .bind(last)
            .fetch_all(&pool)
            .await
            .unwrap();
            seen.extend(new);
            tokio::task::yield_now().await;
        }
        seen
    });
    let replicas = [
        world.other_replica(),
        world.other_replica(),
        world.other_replica(),
    ];
    join_all(fleet.iter().zip(0..).map(|(watched, n)| {
        let (store, world) = (&replicas[n % 3], &world);
        async move {
            for version in 0..20 {
                let read = world.issue(*watched).await;
                let settled = store
                    .accept_resource_version(answer(read, content(version)))
                    .await
                    .unwrap();
                assert_eq!(settled.verdict, Verdict::Accepted);
            }
        }
    }))
    .await;
    // A position that became visible after a later one had been read would be missing here.
    let seen = tokio::time::timeout(LIMIT, reader)
        .await
        .expect("the reader gets to see every event")
        .unwrap();
    let all: Vec<i64> = sqlx::query_scalar("select position from outbox order by position")
        .fetch_all(world.store.pool())
        .await
        .unwrap();
    assert_eq!(seen, all);
}

#[sqlx::test(migrations = "../migrations")]
async fn readers_are_woken(pool: PgPool) {
    let mut listener = PgListener::connect_with(&pool).await.unwrap();
    listener.listen(OUTBOX_CHANNEL).await.unwrap();
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let hint = tokio::time::timeout(LIMIT, listener.recv())
        .await
        .expect("a hint comes")
        .unwrap();
    assert_eq!(hint.payload(), "");
}

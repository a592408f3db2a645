//! The writing statements of the acceptance point without its verdict: the fence is taken out of
//! `judged`, which then says `accepted`, and `settled` and `changed` have to refuse by themselves.

use sqlx::{AssertSqlSafe, PgPool, Row};
use uuid::Uuid;

use crate::world::{Read, Watched, World, content};

const ACCEPT: &str = include_str!("../../src/accept.sql");

const NEVER: &str = "when r.request_id is null then 'NEVER_ISSUED'";
const ALREADY: &str = "when r.outcome is not null then 'ALREADY_SETTLED'";
const EPOCH: &str = "when r.epoch <> s.epoch then 'STALE_EPOCH'";
const GENERATION: &str = "when r.generation <> res.generation
                or r.session_generation <> res.session_generation then 'STALE_GENERATION'";
const CLOSE: &str = "when res.subscription <> 'ACTIVE' then 'STALE_AFTER_CLOSE'";
const ORDINAL: &str = "when r.ordinal <= res.settled_ordinal then 'STALE_ORDINAL'";

/// Gives content for `read` to the statement without `fence`; nothing of it may stand.
async fn refuses_without(world: &World, fence: &str, read: Read) {
    assert!(
        ACCEPT.contains(fence),
        "the statement has no fence {fence:?}"
    );
    let before = world.facts(read.resource).await;
    let mut tx = world.store.pool().begin().await.unwrap();
    let counts = "select (select count(*) from resource_version), (select count(*) from outbox)";
    let written: (i64, i64) = sqlx::query_as(counts).fetch_one(&mut *tx).await.unwrap();
    let row = sqlx::query(AssertSqlSafe(ACCEPT.replacen(fence, "", 1)))
        .bind(vec![read.request.get()])
        .bind(vec![read.resource.get()])
        .bind(vec![read.ordinal.get().cast_signed()])
        .bind(vec!["content"])
        .bind(vec![[9_u8; 32].as_slice()])
        .bind(vec!["text/plain"])
        .bind(vec![1_i64])
        .bind(vec![[9_u8].as_slice()])
        .bind(vec!["docs/1.0"])
        .bind(vec![None::<&str>])
        .bind(vec![None::<&str>])
        .bind(vec![Uuid::now_v7()])
        .fetch_one(&mut *tx)
        .await
        .unwrap();
    assert_eq!(
        row.get::<&str, _>("verdict"),
        "accepted",
        "without {fence:?}"
    );
    assert!(!row.get::<bool, _>("held"), "without {fence:?}");
    let after: (i64, i64) = sqlx::query_as(counts).fetch_one(&mut *tx).await.unwrap();
    assert_eq!(after, written);
    // Looked at where it would stand, then committed all the same: there is nothing to roll back
    // but, perhaps, the receipt of this read.
    tx.commit().await.unwrap();
    assert_eq!(
        world.facts(read.resource).await,
        before,
        "without {fence:?}"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn of_an_ordinal_behind_a_settled_one(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let (late, newer) = (world.issue(watched).await, world.issue(watched).await);
    world.settle(newer, content(1)).await;
    refuses_without(&world, ORDINAL, late).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn of_a_closed_generation(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world.close(watched).await;
    refuses_without(&world, CLOSE, read).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn of_another_generation(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world.close(watched).await;
    world
        .store
        .finish_unsubscribe(&[(watched.id, watched.generation, true)])
        .await
        .unwrap();
    world.active("docs://a").await;
    refuses_without(&world, GENERATION, read).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn of_another_session(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world
        .sql("update resource set session_generation = session_generation + 1")
        .await;
    refuses_without(&world, GENERATION, read).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn of_another_epoch(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world.sql("update subject set epoch = epoch + 1").await;
    refuses_without(&world, EPOCH, read).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn of_a_read_that_has_its_receipt(pool: PgPool) {
    let world = World::new(pool).await;
    let watched: Watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    // Settled without raising the settled ordinal: only the receipt stands against it.
    world
        .settle(read, fencepost_store::AnswerBody::Failed)
        .await;
    refuses_without(&world, ALREADY, read).await;
}

#[sqlx::test(migrations = "../migrations")]
async fn of_a_read_that_was_never_issued(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    let forged = Read {
        ordinal: read.ordinal.next(),
        ..read
    };
    refuses_without(&world, NEVER, forged).await;
}

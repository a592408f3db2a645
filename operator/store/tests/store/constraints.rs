//! The schema's own fences: raw statements, past every guard of the store, are refused.

use sqlx::PgPool;

use crate::world::{World, content};

/// The SQLSTATE that the statement is refused with.
async fn refused(world: &World, sql: &'static str) -> String {
    let error = sqlx::query(sql)
        .execute(world.store.pool())
        .await
        .expect_err(sql);
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .unwrap_or_default()
        .into_owned()
}

#[sqlx::test(migrations = "../migrations")]
async fn no_counter_falls(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    for sql in [
        "update resource set ordinal = ordinal - 1",
        "update resource set settled_ordinal = 0, ordinal = 0",
        "update resource set last_issued_ordinal = 0, settled_ordinal = 0, ordinal = 0",
        "update resource set generation = generation - 1",
        "update resource set session_generation = session_generation - 1",
        "update resource set version_count = version_count - 1",
    ] {
        assert_eq!(refused(&world, sql).await, "FP001", "{sql}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_closed_generation_does_not_change(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    world.issue(watched).await;
    world.close(watched).await;
    for sql in [
        "update resource set last_issued_ordinal = last_issued_ordinal + 1",
        "update resource set settled_ordinal = settled_ordinal + 1",
        "update resource set settled_ordinal = settled_ordinal + 1, ordinal = ordinal + 1",
        "update resource set digest = null",
        "update resource set close_ordinal = close_ordinal - 1",
    ] {
        assert_eq!(refused(&world, sql).await, "FP002", "{sql}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_closed_generation_does_not_reopen(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.close(watched).await;
    let sql = "update resource set subscription = 'ACTIVE'";
    assert_eq!(refused(&world, sql).await, "FP003");
    let items = [(watched.id, watched.generation, false)];
    world.store.finish_unsubscribe(&items).await.unwrap();
    assert_eq!(refused(&world, sql).await, "FP003");
}

#[sqlx::test(migrations = "../migrations")]
async fn a_receipt_does_not_change(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    for sql in [
        "update read set outcome = 'unchanged'",
        "update read set outcome = null, finished_at = null",
        "update read set detail = 'another'",
    ] {
        assert_eq!(refused(&world, sql).await, "FP004", "{sql}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn counters_keep_their_order_and_states_their_shape(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    for sql in [
        "update resource set ordinal = ordinal + 1",
        "update resource set settled_ordinal = last_issued_ordinal + 1",
        "update resource set subscription = 'CLOSED'",
        "update resource set close_ordinal = 1",
        "update resource set presence = 'TOMBSTONED'",
        "update resource set subscription = 'PAUSED'",
    ] {
        assert_eq!(refused(&world, sql).await, "23514", "{sql}");
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn no_version_without_its_read_and_no_second_announcement(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let version =
        "insert into resource_version (resource_id, ordinal, generation, number, digest, size,
             trigger, server_version, epoch, content_kept)
         select resource_id, 99, generation, 99, digest, size, trigger, server_version, epoch, false
         from resource_version";
    assert_eq!(refused(&world, version).await, "23503");
    let event =
        "insert into outbox (position, id, kind, resource_id, namespace, server, subject, watches,
             uri, epoch, generation, ordinal)
         select 99, gen_random_uuid(), kind, resource_id, namespace, server, subject, watches,
             uri, epoch, generation, ordinal
         from outbox";
    assert_eq!(refused(&world, event).await, "23505");
}

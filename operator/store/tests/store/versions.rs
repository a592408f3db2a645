//! Versions and their content: numbers, predecessors, what is kept and what is shared.

use fencepost_ledger::Verdict;
use fencepost_store::AnswerBody;
use sqlx::PgPool;

use crate::world::{World, content, digest, spec};

#[sqlx::test(migrations = "../migrations")]
async fn the_same_digest_raises_the_watermark_and_nothing_else(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let again = world.read(watched, content(1)).await;
    assert_eq!(
        (again.verdict, again.previous),
        (Verdict::Unchanged, Some(digest(1)))
    );
    let facts = world.facts(watched.id).await;
    assert_eq!((facts.ordinal, facts.version_count), (2, 1));
    assert_eq!(world.count("select count(*) from outbox").await, 1);
    assert_eq!(
        world.count("select count(*) from resource_version").await,
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn content_beyond_keep_versions_is_let_go(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    for n in 1..=6 {
        assert_eq!(
            world.read(watched, content(n)).await.verdict,
            Verdict::Accepted
        );
    }
    let kept: Vec<i64> = sqlx::query_scalar(
        "select number from resource_version where content_kept order by number",
    )
    .fetch_all(world.store.pool())
    .await
    .unwrap();
    assert_eq!(kept, [4, 5, 6]);
    // A bound that is lowered holds at once, and then for each version.
    let mut lowered = spec("docs://a");
    lowered.keep_versions = 1;
    world
        .store
        .put_resources(&world.session, &[lowered])
        .await
        .unwrap();
    assert_eq!(
        world
            .count("select sum(number)::bigint from resource_version where content_kept")
            .await,
        6
    );
    world.read(watched, content(7)).await;
    assert_eq!(
        world
            .count("select sum(number)::bigint from resource_version where content_kept")
            .await,
        7
    );
    let chain: Vec<(i64, Option<Vec<u8>>)> =
        sqlx::query_as("select number, previous_digest from resource_version order by number")
            .fetch_all(world.store.pool())
            .await
            .unwrap();
    assert_eq!(chain[0], (1, None));
    for (number, previous) in &chain[1..] {
        assert_eq!(
            *previous,
            Some(vec![u8::try_from(*number).unwrap() - 1; 32])
        );
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn equal_content_is_stored_once_and_touched_again(pool: PgPool) {
    let world = World::new(pool).await;
    let (a, b) = (
        world.active("docs://a").await,
        world.active("docs://b").await,
    );
    world.read(a, content(1)).await;
    world
        .sql("update content set touched_at = '2026-01-01T00:00:00Z'")
        .await;
    world.read(b, content(1)).await;
    assert_eq!(world.count("select count(*) from content").await, 1);
    let old = "select count(*) from content where touched_at = '2026-01-01T00:00:00Z'";
    assert_eq!(world.count(old).await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn one_flush_of_many_resources_with_the_same_content(pool: PgPool) {
    let world = World::new(pool).await;
    let mut reads = Vec::new();
    for n in 0..20 {
        let watched = world.active(&format!("docs://{n}")).await;
        reads.push(world.issue(watched).await);
    }
    let settled =
        futures::future::join_all(reads.into_iter().map(|read| world.settle(read, content(1))))
            .await;
    assert!(settled.iter().all(|s| s.verdict == Verdict::Accepted));
    assert_eq!(world.count("select count(*) from content").await, 1);
    assert_eq!(
        world
            .count("select count(*) from resource_version where content_kept")
            .await,
        20
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn what_is_not_to_be_stored_is_not(pool: PgPool) {
    let world = World::new(pool).await;
    let mut unstored = spec("docs://a");
    unstored.store_content = false;
    world
        .store
        .put_resources(&world.session, &[unstored])
        .await
        .unwrap();
    let id = world
        .store
        .put_resources(&world.session, &[])
        .await
        .unwrap();
    assert!(id.is_empty());
    let watched = {
        let rows: Vec<uuid::Uuid> = sqlx::query_scalar("select id from resource")
            .fetch_all(world.store.pool())
            .await
            .unwrap();
        let id = fencepost_ledger::ResourceId::new(rows[0]);
        let generation = world.open(id).await.unwrap();
        world.activate(id, generation).await;
        crate::world::Watched { id, generation }
    };
    world.read(watched, content(1)).await;
    assert_eq!(world.count("select count(*) from content").await, 0);
    assert_eq!(
        world
            .count("select count(*) from resource_version where not content_kept")
            .await,
        1
    );
    assert_eq!(
        world.read(watched, AnswerBody::NotFound).await.verdict,
        Verdict::NotFound
    );
}

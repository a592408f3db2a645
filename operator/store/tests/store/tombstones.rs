//! Tombstones by reads alone: how often, how long, and when too many vanish at once.

use fencepost_ledger::{ResourceId, StaleReason, Verdict};
use fencepost_store::{AnswerBody, TombstonePolicy, TombstoneVerdict};
use sqlx::PgPool;

use crate::world::{Watched, World, content};

async fn confirm(world: &World, watched: Watched) -> TombstoneVerdict {
    let items = [(watched.id, watched.generation)];
    world
        .store
        .confirm_tombstones(&items, TombstonePolicy::default())
        .await
        .unwrap()[0]
}

#[sqlx::test(migrations = "../migrations")]
async fn confirmed_after_two_reads_in_order_over_the_bound(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    assert_eq!(
        confirm(&world, watched).await,
        TombstoneVerdict::Refused,
        "it is there"
    );
    world.read(watched, AnswerBody::NotFound).await;
    assert_eq!(
        confirm(&world, watched).await,
        TombstoneVerdict::NotYet,
        "one read"
    );
    world.read(watched, AnswerBody::NotFound).await;
    world
        .sql("update resource set max_staleness = '1 hour'")
        .await;
    assert_eq!(
        confirm(&world, watched).await,
        TombstoneVerdict::NotYet,
        "not for long enough"
    );
    world.sql("update resource set max_staleness = '0'").await;
    let other = Watched {
        generation: watched.generation.next(),
        ..watched
    };
    assert_eq!(
        confirm(&world, other).await,
        TombstoneVerdict::Refused,
        "another generation"
    );
    let late = world.issue(watched).await;
    assert_eq!(confirm(&world, watched).await, TombstoneVerdict::Confirmed);
    assert_eq!(
        confirm(&world, watched).await,
        TombstoneVerdict::Refused,
        "twice"
    );
    let facts = world.facts(watched.id).await;
    assert_eq!(
        (facts.presence.as_str(), facts.subscription.as_str()),
        ("TOMBSTONED", "CLOSED")
    );
    assert_eq!(facts.digest, None);
    let told =
        "select count(*) from outbox where kind = 'resource.tombstoned' and basis = 'ReadsOnly'
        and digest is null and previous_digest is not null and ordinal = 3";
    assert_eq!(world.count(told).await, 1);
    let late = world.settle(late, content(2)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleAfterClose));
}

#[sqlx::test(migrations = "../migrations")]
async fn without_a_version_there_is_nothing_to_announce(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, AnswerBody::NotFound).await;
    world.read(watched, AnswerBody::NotFound).await;
    assert_eq!(confirm(&world, watched).await, TombstoneVerdict::Confirmed);
    assert_eq!(world.count("select count(*) from outbox").await, 0);
}

#[sqlx::test(migrations = "../migrations")]
async fn content_brings_it_back(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    world.read(watched, AnswerBody::NotFound).await;
    assert_eq!(
        world.read(watched, content(1)).await.verdict,
        Verdict::Unchanged
    );
    assert_eq!(world.facts(watched.id).await.presence, "PRESENT");
    world.read(watched, AnswerBody::NotFound).await;
    assert_eq!(
        confirm(&world, watched).await,
        TombstoneVerdict::NotYet,
        "it counts from the start"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_new_generation_brings_its_own_evidence(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    world.read(watched, AnswerBody::NotFound).await;
    world.read(watched, AnswerBody::NotFound).await;
    world.close(watched).await;
    world
        .store
        .finish_unsubscribe(&[(watched.id, watched.generation, true)])
        .await
        .unwrap();
    let watched = world.active("docs://a").await;
    assert_eq!(confirm(&world, watched).await, TombstoneVerdict::NotYet);
    world.read(watched, AnswerBody::NotFound).await;
    assert_eq!(confirm(&world, watched).await, TombstoneVerdict::NotYet);
    world.read(watched, AnswerBody::NotFound).await;
    assert_eq!(confirm(&world, watched).await, TombstoneVerdict::Confirmed);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_tombstoned_resource_that_is_watched_again_and_found_is_announced(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    world.read(watched, AnswerBody::NotFound).await;
    world.read(watched, AnswerBody::NotFound).await;
    confirm(&world, watched).await;
    let watched = world.active("docs://a").await;
    assert_eq!(world.facts(watched.id).await.presence, "TOMBSTONED");
    let found = world.read(watched, content(1)).await;
    assert_eq!((found.verdict, found.previous), (Verdict::Accepted, None));
    assert_eq!(world.facts(watched.id).await.presence, "PRESENT");
    assert_eq!(world.count("select count(*) from outbox").await, 3);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_fleet_that_vanishes_at_once_is_held(pool: PgPool) {
    let world = World::new(pool).await;
    let mut fleet = Vec::new();
    for n in 0..10 {
        let watched = world.active(&format!("docs://{n}")).await;
        world.read(watched, content(n)).await;
        fleet.push(watched);
    }
    for watched in &fleet[..6] {
        world.read(*watched, AnswerBody::NotFound).await;
        world.read(*watched, AnswerBody::NotFound).await;
    }
    let items: Vec<(ResourceId, _)> = fleet.iter().map(|w| (w.id, w.generation)).collect();
    let policy = TombstonePolicy::default();
    let verdicts = world
        .store
        .confirm_tombstones(&items, policy)
        .await
        .unwrap();
    assert_eq!(verdicts[..6], [TombstoneVerdict::Held; 6]);
    assert_eq!(verdicts[6..], [TombstoneVerdict::Refused; 4]);
    assert_eq!(
        world
            .count("select count(*) from outbox where kind = 'resource.tombstoned'")
            .await,
        0
    );
    // One comes back: five are not more than five.
    world.read(fleet[0], content(0)).await;
    let verdicts = world
        .store
        .confirm_tombstones(&items, policy)
        .await
        .unwrap();
    assert_eq!(verdicts[1..6], [TombstoneVerdict::Confirmed; 5]);
}

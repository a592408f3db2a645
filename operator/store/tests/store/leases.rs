//! Leases and sessions: who owns what, and that an end leaves no read without a receipt.

use fencepost_ledger::{SessionGeneration, Verdict};
use fencepost_store::{SessionEnd, SessionReceipt};
use serde_json::json;
use sqlx::PgPool;

use crate::world::{TTL, World, content};

#[sqlx::test(migrations = "../migrations")]
async fn a_lease_has_one_owner_until_it_expires(pool: PgPool) {
    let world = World::new(pool).await;
    let (server, subject) = (world.session.server, world.session.subject);
    let other = world.other_replica();
    assert_eq!(
        other.acquire_lease(server, subject, TTL).await.unwrap(),
        None
    );
    let own = world
        .store
        .acquire_lease(server, subject, TTL)
        .await
        .unwrap();
    assert_eq!(own, Some(SessionGeneration::new(2)));
    world.expire_lease().await;
    // Expired, but nobody took it.
    let lease = (server, subject, SessionGeneration::new(2));
    assert_eq!(
        world.store.renew_leases(&[lease], TTL).await.unwrap(),
        [true]
    );
    assert_eq!(
        other.acquire_lease(server, subject, TTL).await.unwrap(),
        None
    );
    assert_eq!(world.store.release_all_leases().await.unwrap(), 1);
    let taken = other.acquire_lease(server, subject, TTL).await.unwrap();
    assert_eq!(taken, Some(SessionGeneration::new(3)));
    assert_eq!(
        world.store.renew_leases(&[lease], TTL).await.unwrap(),
        [false]
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn renewals_answer_in_their_order(pool: PgPool) {
    let world = World::new(pool).await;
    let (server, subject, generation) = (
        world.session.server,
        world.session.subject,
        world.session.generation,
    );
    let old = SessionGeneration::ZERO;
    let leases = [
        (server, subject, old),
        (server, subject, generation),
        (subject, server, generation),
    ];
    assert_eq!(
        world.store.renew_leases(&leases, TTL).await.unwrap(),
        [false, true, false]
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn two_replicas_racing_for_a_lease_leave_one_owner(pool: PgPool) {
    let world = World::new(pool).await;
    world.expire_lease().await;
    let (server, subject) = (world.session.server, world.session.subject);
    let (a, b) = (world.other_replica(), world.other_replica());
    let (a, b) = tokio::join!(
        a.acquire_lease(server, subject, TTL),
        b.acquire_lease(server, subject, TTL)
    );
    assert_eq!(a.unwrap().is_some(), b.unwrap().is_none());
    assert_eq!(
        world
            .count("select count(*) from session where closed_at is null")
            .await,
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn the_receipt_is_stored_only_by_the_owner(pool: PgPool) {
    let world = World::new(pool).await;
    let receipt = SessionReceipt {
        era: "modern".into(),
        protocol_version: "2026-07-28".into(),
        server_version: "docs/1.0".into(),
        receipt: json!({"resources": {"subscribe": true}}),
        digest: [7; 32],
    };
    assert!(
        world
            .store
            .session_connected(&world.session, &receipt)
            .await
            .unwrap()
    );
    let other = world.other_replica();
    assert!(
        !other
            .session_connected(&world.session, &receipt)
            .await
            .unwrap()
    );
    world
        .store
        .end_session(&world.session, "stopped")
        .await
        .unwrap();
    assert!(
        !world
            .store
            .session_connected(&world.session, &receipt)
            .await
            .unwrap()
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_sessions_end_closes_and_gives_up(pool: PgPool) {
    let world = World::new(pool).await;
    let (a, b, c) = (
        world.active("docs://a").await,
        world.active("docs://b").await,
        world.active("docs://c").await,
    );
    world.read(a, content(1)).await;
    let (open, closing) = (world.issue(a).await, world.issue(b).await);
    world.close(b).await;
    world.close(c).await;
    world
        .store
        .finish_unsubscribe(&[(c.id, c.generation, false)])
        .await
        .unwrap();
    let end = world
        .store
        .end_session(&world.session, "the server went away")
        .await
        .unwrap();
    assert_eq!(
        end,
        SessionEnd {
            closed: 3,
            given_up: 2
        }
    );
    for read in [open, closing] {
        assert_eq!(
            world.receipt(read).await.1.as_deref(),
            Some("STALE_AFTER_CLOSE")
        );
        assert_eq!(
            world.settle(read, content(9)).await.verdict,
            Verdict::AlreadySettled
        );
    }
    let facts = world.facts(a.id).await;
    assert_eq!(
        (facts.subscription.as_str(), facts.close_ordinal),
        ("CLOSED", Some(2))
    );
    assert_eq!(
        facts.digest,
        Some(vec![1; 32]),
        "closing withdraws no content"
    );
    // Its lease is free, and it opens nothing any more.
    assert_eq!(world.open(a.id).await, None);
    let other = world.other_replica();
    let (server, subject) = (world.session.server, world.session.subject);
    assert!(
        other
            .acquire_lease(server, subject, TTL)
            .await
            .unwrap()
            .is_some()
    );
    let again = world
        .store
        .end_session(&world.session, "twice")
        .await
        .unwrap();
    assert_eq!(again, SessionEnd::default());
    assert_eq!(
        world
            .count("select count(*) from session where closed_at is null")
            .await,
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_late_end_of_an_old_session_spares_the_new_one(pool: PgPool) {
    let mut world = World::new(pool).await;
    let old = world.session;
    let (server, subject) = (old.server, old.subject);
    world.session.generation = world
        .store
        .acquire_lease(server, subject, TTL)
        .await
        .unwrap()
        .unwrap();
    let watched = world.active("docs://a").await;
    assert_eq!(
        world.store.end_session(&old, "late").await.unwrap(),
        SessionEnd::default()
    );
    assert_eq!(world.facts(watched.id).await.subscription, "ACTIVE");
    assert_eq!(
        world
            .other_replica()
            .acquire_lease(server, subject, TTL)
            .await
            .unwrap(),
        None
    );
}

/// Its owner died, and no manifest asks for the pair any more: whoever is alive closes it.
#[sqlx::test(migrations = "../migrations")]
async fn an_abandoned_session_is_closed_and_its_owner_fenced(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    let other = world.other_replica();
    assert_eq!(other.close_abandoned().await.unwrap(), 0, "it is held");
    world
        .sql("update session_lease set expires_at = clock_timestamp() - interval '1 minute'")
        .await;
    assert_eq!(other.close_abandoned().await.unwrap(), 1);
    assert_eq!(other.close_abandoned().await.unwrap(), 0, "once");
    assert_eq!(world.facts(watched.id).await.subscription, "CLOSED");
    assert_eq!(
        world
            .count("select count(*) from read where outcome is null")
            .await,
        0
    );

    // It was only paused, and wakes up: its lease is gone, and its answer changes nothing.
    let session = world.session;
    let lease = (session.server, session.subject, session.generation);
    assert_eq!(
        world.store.renew_leases(&[lease], TTL).await.unwrap(),
        [false]
    );
    let settled = world.settle(read, content(1)).await;
    assert_eq!(settled.verdict, Verdict::AlreadySettled);
    assert_eq!(
        world.count("select count(*) from resource_version").await,
        0
    );
}

/// A standby may know of a pair before the one that publishes has put it into the ledger.
#[sqlx::test(migrations = "../migrations")]
async fn what_is_not_published_cannot_be_leased(pool: PgPool) {
    let world = World::new(pool).await;
    let stranger = uuid::Uuid::new_v4();
    for (server, subject) in [
        (stranger, world.session.subject),
        (world.session.server, stranger),
    ] {
        let lease = world.store.acquire_lease(server, subject, TTL).await;
        assert_eq!(lease.unwrap(), None);
    }
}

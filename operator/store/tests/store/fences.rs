//! Each fence of the acceptance point and of issuing, by a test of its own.

use fencepost_ledger::{
    Generation, IssueRefusal, Ordinal, Outcome, RequestId, SessionGeneration, StaleReason, Trigger,
    Verdict,
};
use fencepost_store::{AnswerBody, IssueError, IssueRead};
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{TTL, Watched, World, content, digest};

#[sqlx::test(migrations = "../migrations")]
async fn a_late_answer_leaves_only_a_stale_receipt(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let (a, b) = (world.issue(watched).await, world.issue(watched).await);
    assert_eq!(world.settle(b, content(2)).await.verdict, Verdict::Accepted);
    let before = world.facts(watched.id).await;
    let late = world.settle(a, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleOrdinal));
    assert_eq!(world.facts(watched.id).await, before);
    assert_eq!(
        world.receipt(a).await,
        (Some("stale".into()), Some("STALE_ORDINAL".into()))
    );
    assert_eq!(
        world.count("select count(*) from resource_version").await,
        1
    );
    assert_eq!(world.count("select count(*) from outbox").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn answers_in_order_are_accepted_in_turn(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let (a, b) = (world.issue(watched).await, world.issue(watched).await);
    let first = world.settle(a, content(1)).await;
    assert_eq!((first.verdict, first.previous), (Verdict::Accepted, None));
    let second = world.settle(b, content(2)).await;
    assert_eq!(
        (second.verdict, second.previous),
        (Verdict::Accepted, Some(digest(1)))
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_late_not_found_makes_no_tombstone(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let (a, b) = (world.issue(watched).await, world.issue(watched).await);
    world.settle(b, content(2)).await;
    let late = world.settle(a, AnswerBody::NotFound).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleOrdinal));
    assert_eq!(world.facts(watched.id).await.presence, "PRESENT");
}

#[sqlx::test(migrations = "../migrations")]
async fn a_not_found_fences_the_content_issued_before_it(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let (a, b) = (world.issue(watched).await, world.issue(watched).await);
    assert_eq!(
        world.settle(b, AnswerBody::NotFound).await.verdict,
        Verdict::NotFound
    );
    let late = world.settle(a, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleOrdinal));
    assert_eq!(world.facts(watched.id).await.presence, "TOMBSTONE_PENDING");
}

#[sqlx::test(migrations = "../migrations")]
async fn nothing_changes_after_close(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let (a, b) = (world.issue(watched).await, world.issue(watched).await);
    assert_eq!(world.close(watched).await, Some(Ordinal::new(3)));
    let before = world.facts(watched.id).await;
    for (read, body) in [(a, content(2)), (b, AnswerBody::NotFound)] {
        let late = world.settle(read, body).await;
        assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleAfterClose));
    }
    assert_eq!(world.facts(watched.id).await, before);
    assert_eq!(world.count("select count(*) from outbox").await, 1);
    let refused = world.try_issue(watched).await.unwrap_err();
    assert!(
        matches!(refused, IssueError::Refused(IssueRefusal::NotActive)),
        "{refused}"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn another_generation_takes_no_old_answer(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let old = world.issue(watched).await;
    world.close(watched).await;
    let items = [(watched.id, watched.generation, true)];
    assert_eq!(
        world.store.finish_unsubscribe(&items).await.unwrap(),
        [true]
    );
    let generation = world.open(watched.id).await.unwrap();
    assert!(generation > watched.generation);
    assert!(world.activate(watched.id, generation).await);
    let late = world.settle(old, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleGeneration));
    let refused = world.try_issue(watched).await.unwrap_err();
    assert!(
        matches!(refused, IssueError::Refused(IssueRefusal::OtherGeneration)),
        "{refused}"
    );
    let ordinal = world
        .issue(Watched {
            generation,
            ..watched
        })
        .await
        .ordinal;
    assert_eq!(ordinal, Ordinal::new(2), "ordinals rise across generations");
}

#[sqlx::test(migrations = "../migrations")]
async fn another_session_takes_no_old_answer(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    // Not a way that the store offers: only the session differs.
    world
        .sql("update resource set session_generation = session_generation + 1")
        .await;
    let late = world.settle(read, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleGeneration));
    let refused = world.try_issue(watched).await.unwrap_err();
    assert!(
        matches!(refused, IssueError::Refused(IssueRefusal::OtherSession)),
        "{refused}"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_withdrawn_permission_takes_no_answer_also_once_it_is_back(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let (a, b) = (world.issue(watched).await, world.issue(watched).await);
    world.publish_revoked(true).await;
    assert_eq!(world.facts(watched.id).await.subscription, "UNSUBSCRIBING");
    let late = world.settle(a, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleEpoch));
    let refused = world.try_issue(watched).await.unwrap_err();
    assert!(
        matches!(refused, IssueError::Refused(IssueRefusal::Revoked)),
        "{refused}"
    );
    world.publish_revoked(false).await;
    let late = world.settle(b, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleEpoch));
    assert_eq!(world.count("select epoch from subject").await, 2);
}

#[sqlx::test(migrations = "../migrations")]
async fn the_epoch_alone_is_a_fence(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world.sql("update subject set epoch = epoch + 1").await;
    let late = world.settle(read, content(1)).await;
    assert_eq!(late.verdict, Verdict::Stale(StaleReason::StaleEpoch));
}

#[sqlx::test(migrations = "../migrations")]
async fn what_was_never_issued_is_never_accepted(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let other = world.active("docs://b").await;
    let read = world.issue(watched).await;
    let forged = [
        crate::world::Read {
            request: RequestId::new(Uuid::now_v7()),
            ..read
        },
        crate::world::Read {
            ordinal: read.ordinal.next(),
            ..read
        },
        crate::world::Read {
            resource: other.id,
            ..read
        },
    ];
    for forged in forged {
        assert_eq!(
            world.settle(forged, content(1)).await.verdict,
            Verdict::NeverIssued
        );
    }
    assert_eq!(
        world.count("select count(*) from resource_version").await,
        0
    );
    assert_eq!(
        world.settle(read, content(1)).await.verdict,
        Verdict::Accepted
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_read_settles_once_and_says_how(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world.settle(read, content(1)).await;
    let again = world.settle(read, content(2)).await;
    assert_eq!(again.verdict, Verdict::AlreadySettled);
    assert_eq!(again.receipt, Some((Outcome::Accepted, None)));
    assert_eq!(world.facts(watched.id).await.digest, Some(vec![1; 32]));
}

#[sqlx::test(migrations = "../migrations")]
async fn the_same_request_is_issued_once(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let other = world.active("docs://b").await;
    let read = IssueRead {
        request: RequestId::new(Uuid::now_v7()),
        resource: watched.id,
        generation: watched.generation,
        session: world.session.generation,
        trigger: Trigger::Manual,
    };
    let first = world.store.issue_read(read).await.unwrap();
    assert_eq!(world.store.issue_read(read).await.unwrap(), first);
    assert_eq!(world.facts(watched.id).await.last_issued_ordinal, 1);
    let reused = IssueRead {
        resource: other.id,
        ..read
    };
    let refused = world.store.issue_read(reused).await.unwrap_err();
    assert!(
        matches!(&refused, IssueError::Store(e) if e.category() == "fence"),
        "{refused}"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_paused_owner_that_wakes_up_is_fenced(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let read = world.issue(watched).await;
    world.expire_lease().await;
    let other = world.other_replica();
    let taken = other
        .acquire_lease(world.session.server, world.session.subject, TTL)
        .await
        .unwrap();
    assert_eq!(taken, Some(SessionGeneration::new(2)));
    let late = world.settle(read, content(1)).await;
    assert_eq!(late.verdict, Verdict::AlreadySettled);
    assert_eq!(
        late.receipt,
        Some((Outcome::Stale, Some("STALE_AFTER_CLOSE".into())))
    );
    let refused = world.try_issue(watched).await.unwrap_err();
    assert!(
        matches!(refused, IssueError::Refused(IssueRefusal::NotActive)),
        "{refused}"
    );
    assert_eq!(world.open(watched.id).await, None::<Generation>);
    let lease = (
        world.session.server,
        world.session.subject,
        world.session.generation,
    );
    assert_eq!(
        world.store.renew_leases(&[lease], TTL).await.unwrap(),
        [false]
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn an_ordinal_is_not_reused_across_a_takeover(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let old = world.issue(watched).await;
    world.expire_lease().await;
    world.store = world.other_replica();
    let (server, subject) = (world.session.server, world.session.subject);
    world.session.generation = world
        .store
        .acquire_lease(server, subject, TTL)
        .await
        .unwrap()
        .unwrap();
    let watched = world.active("docs://a").await;
    let new = world.issue(watched).await;
    assert!(new.ordinal > old.ordinal);
    assert_eq!(
        world.settle(new, content(1)).await.verdict,
        Verdict::Accepted
    );
}

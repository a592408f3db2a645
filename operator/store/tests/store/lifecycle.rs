//! Steps of a subscription, marks, and what the engine tells of a resource.

use std::time::Duration;

use fencepost_ledger::{Generation, Verdict};
use fencepost_store::{AnswerBody, MarkKind, MarkRow, ServerStatus};
use sqlx::PgPool;

use crate::world::{TTL, Watched, World, answer, content, spec};

#[sqlx::test(migrations = "../migrations")]
async fn steps_that_do_not_fit_change_nothing(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.put("docs://a").await;
    assert!(!world.activate(id, Generation::ZERO).await, "DISCOVERED");
    let generation = world.open(id).await.unwrap();
    assert_eq!(world.open(id).await, None, "open already");
    assert!(
        !world.activate(id, generation.next()).await,
        "another generation"
    );
    assert!(world.activate(id, generation).await);
    assert!(!world.activate(id, generation).await, "twice");
    let watched = Watched { id, generation };
    assert_eq!(
        world
            .close(Watched {
                generation: generation.next(),
                ..watched
            })
            .await,
        None
    );
    assert!(world.close(watched).await.is_some());
    assert_eq!(world.close(watched).await, None, "twice");
    let finish = |acknowledged| {
        let store = world.store.clone();
        async move {
            store
                .finish_unsubscribe(&[(id, generation, acknowledged)])
                .await
                .unwrap()[0]
        }
    };
    assert!(finish(false).await);
    assert!(
        !finish(true).await,
        "UNSUBSCRIBE_UNKNOWN is not closed by a late acknowledgement"
    );
    assert_eq!(
        world.open(id).await,
        None,
        "nor does it reopen in its own session"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn an_unknown_unsubscribe_reopens_in_a_new_session(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.close(watched).await;
    world
        .store
        .finish_unsubscribe(&[(watched.id, watched.generation, false)])
        .await
        .unwrap();
    let (server, subject) = (world.session.server, world.session.subject);
    world.session.generation = world
        .store
        .acquire_lease(server, subject, TTL)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(world.facts(watched.id).await.subscription, "CLOSED");
    assert_eq!(world.open(watched.id).await, Some(Generation::new(2)));
}

#[sqlx::test(migrations = "../migrations")]
async fn putting_a_resource_again_keeps_what_it_has(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let mut changed = spec("docs://a");
    changed.watches = vec!["agents/z".into(), "agents/b".into()];
    let specs = [spec("docs://b"), changed, spec("docs://A")];
    let rows = world
        .store
        .put_resources(&world.session, &specs)
        .await
        .unwrap();
    assert_eq!(rows[1].id, watched.id);
    assert_eq!(rows[1].digest, Some(crate::world::digest(1)));
    assert_eq!(
        (rows[0].generation, rows[2].generation),
        (Generation::ZERO, Generation::ZERO)
    );
    let watches: Vec<String> =
        sqlx::query_scalar("select watches from resource where uri = 'docs://a'")
            .fetch_one(world.store.pool())
            .await
            .unwrap();
    assert_eq!(watches, ["agents/b", "agents/z"], "sorted");
    let open = world
        .store
        .open_resources_not_in(&world.session, &["docs://b".into()])
        .await
        .unwrap();
    assert_eq!(open, [(watched.id, watched.generation)]);
    assert_eq!(
        world
            .store
            .unwatch_except(&world.session, &["docs://a".into()])
            .await
            .unwrap(),
        2
    );
}

fn mark(watched: Watched, kind: MarkKind, age: u64) -> MarkRow {
    MarkRow {
        resource: watched.id,
        age: Duration::from_millis(age),
        kind,
        generation: watched.generation,
        detail: None,
    }
}

const DIRTY: &str = "select count(*) from resource where dirty_since is not null";

#[sqlx::test(migrations = "../migrations")]
async fn a_read_answers_only_the_invalidations_before_it(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world
        .store
        .mark(&[mark(watched, MarkKind::Opened, 0)])
        .await
        .unwrap();
    assert_eq!(world.count(DIRTY).await, 0);
    world
        .store
        .mark(&[mark(watched, MarkKind::Notification, 0)])
        .await
        .unwrap();
    assert_eq!(world.count(DIRTY).await, 1);
    let read = world.issue(watched).await;
    assert_eq!(
        world.settle(read, content(1)).await.verdict,
        Verdict::Accepted
    );
    assert_eq!(world.count(DIRTY).await, 0);
    // Older than what was confirmed.
    world
        .store
        .mark(&[mark(watched, MarkKind::Gap, 60_000)])
        .await
        .unwrap();
    assert_eq!(world.count(DIRTY).await, 0);
    let read = world.issue(watched).await;
    world
        .store
        .mark(&[mark(watched, MarkKind::Notification, 0)])
        .await
        .unwrap();
    world.settle(read, content(2)).await;
    assert_eq!(
        world.count(DIRTY).await,
        1,
        "it came after the read was issued"
    );
    assert_eq!(
        world
            .count("select count(*) from mark where kind = 'notification'")
            .await,
        2
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_failure_keeps_the_content_and_marks_it_stale(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let before = world.facts(watched.id).await;
    let read = world.issue(watched).await;
    let mut failed = answer(read, AnswerBody::Failed);
    failed.reason = Some("TIMEOUT".into());
    let settled = world.store.accept_resource_version(failed).await.unwrap();
    assert_eq!(settled.verdict, Verdict::Failed);
    let after = world.facts(watched.id).await;
    assert_eq!(
        (after.digest, after.ordinal),
        (before.digest, before.ordinal)
    );
    assert_eq!(
        world
            .count("select count(*) from resource where stale_reason = 'TIMEOUT'")
            .await,
        1
    );
    assert_eq!(
        world.read(watched, AnswerBody::Refused).await.verdict,
        Verdict::Refused
    );
    assert_eq!(
        world
            .count("select count(*) from resource where stale_reason = 'REFUSED'")
            .await,
        1
    );
    assert_eq!(
        world.read(watched, content(1)).await.verdict,
        Verdict::Unchanged
    );
    assert_eq!(
        world
            .count("select count(*) from resource where stale_reason is null")
            .await,
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn flags_and_server_status_are_kept(pool: PgPool) {
    let world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world
        .store
        .set_flags(&[(watched.id, true, true)])
        .await
        .unwrap();
    assert_eq!(
        world
            .count("select count(*) from resource where volatile and delivery_proven")
            .await,
        1
    );
    let unwell = |message: &str| ServerStatus::Unwell {
        reason: "REFUSED".into(),
        message: message.into(),
    };
    let server = world.session.server;
    world
        .store
        .set_server_status(server, unwell("first"))
        .await
        .unwrap();
    world
        .sql("update server set reason_since = '2026-01-01T00:00:00Z'")
        .await;
    world
        .store
        .set_server_status(server, unwell("second"))
        .await
        .unwrap();
    let since = "select count(*) from server where message = 'second' and reason_since = '2026-01-01T00:00:00Z'";
    assert_eq!(
        world.count(since).await,
        1,
        "the reason is the same since then"
    );
}

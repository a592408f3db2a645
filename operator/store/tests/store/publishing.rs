//! Publishing whole sets of objects: deletions, names with new uids, withdrawals, new indexes.

use fencepost_store::{IndexRow, MigrateError, SchemaState, WatchRow};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::world::{TTL, World, content};

fn index(name: &str) -> IndexRow {
    IndexRow {
        uid: Uuid::new_v4(),
        namespace: "agents".into(),
        name: name.into(),
        url: "http://rag/hook".into(),
        watches: Some(vec!["agents/watch".into()]),
        events: None,
        include_content: false,
        include_supersede: true,
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_name_with_a_new_uid_is_a_new_server(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.read(watched, content(1)).await;
    let old = world.objects.servers[0].uid;
    world.objects.servers[0].uid = Uuid::new_v4();
    world.store.publish(&world.objects).await.unwrap();
    assert_eq!(
        world
            .count("select count(*) from server where deleted_at is null")
            .await,
        1
    );
    assert_eq!(
        world.facts(watched.id).await.subscription,
        "UNSUBSCRIBING",
        "of the old one"
    );
    world.session.server = world.objects.servers[0].uid;
    let (server, subject) = (world.session.server, world.session.subject);
    world.session.generation = world
        .store
        .acquire_lease(server, subject, crate::world::TTL)
        .await
        .unwrap()
        .unwrap();
    let fresh = world.active("docs://a").await;
    assert_ne!(fresh.id, watched.id);
    assert_eq!(
        world.facts(fresh.id).await.digest,
        None,
        "nothing is carried over"
    );
    world.objects.servers[0].uid = old;
    world.store.publish(&world.objects).await.unwrap();
    let live: Uuid = sqlx::query_scalar("select uid from server where deleted_at is null")
        .fetch_one(world.store.pool())
        .await
        .unwrap();
    assert_eq!(live, old, "a uid that comes back is live again");
}

#[sqlx::test(migrations = "../migrations")]
async fn a_withdrawal_raises_the_epoch_once(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.issue(watched).await;
    world.publish_revoked(true).await;
    world.publish_revoked(true).await;
    assert_eq!(world.count("select epoch from subject").await, 2);
    let facts = world.facts(watched.id).await;
    assert_eq!(
        (facts.subscription.as_str(), facts.close_ordinal),
        ("UNSUBSCRIBING", Some(1))
    );
    assert_eq!(world.open(watched.id).await, None);
    world.publish_revoked(false).await;
    assert_eq!(
        world
            .count("select epoch from subject where revoked_at is null")
            .await,
        2
    );
    world.publish_revoked(true).await;
    assert_eq!(world.count("select epoch from subject").await, 3);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_deleted_subject_is_a_withdrawn_one(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    let subjects = std::mem::take(&mut world.objects.subjects);
    world.store.publish(&world.objects).await.unwrap();
    world.store.publish(&world.objects).await.unwrap();
    assert_eq!(
        world
            .count("select epoch from subject where revoked and deleted_at is not null")
            .await,
        2
    );
    assert_eq!(world.facts(watched.id).await.subscription, "UNSUBSCRIBING");
    world.objects.subjects = subjects;
    world.store.publish(&world.objects).await.unwrap();
    assert_eq!(
        world
            .count("select epoch from subject where not revoked and deleted_at is null")
            .await,
        2
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_new_index_is_told_what_comes_after_it(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watched = world.active("docs://a").await;
    world.objects.indexes.push(index("first"));
    world.store.publish(&world.objects).await.unwrap();
    for n in 1..=3 {
        world.read(watched, content(n)).await;
    }
    world.objects.indexes.push(index("second"));
    world.objects.indexes[0].events = Some(vec!["resource.accepted".into()]);
    world.store.publish(&world.objects).await.unwrap();
    let positions: Vec<(String, i64, i64, Option<Vec<String>>)> = sqlx::query_as(
        "select name, delivered_position, acknowledged_position, events from derived_index order by name",
    )
    .fetch_all(world.store.pool())
    .await
    .unwrap();
    assert_eq!(
        positions,
        [
            ("first".into(), 0, 0, Some(vec!["resource.accepted".into()])),
            ("second".into(), 3, 3, None)
        ]
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn watches_follow_the_manifests(pool: PgPool) {
    let mut world = World::new(pool).await;
    let watch = WatchRow {
        uid: Uuid::new_v4(),
        namespace: "agents".into(),
        name: "limits".into(),
        server_uid: Some(world.session.server),
        subject_uid: None,
        shown: json!({"mode": "Auto"}),
        conditions: Vec::new(),
    };
    world.objects.watches.push(watch);
    world.store.publish(&world.objects).await.unwrap();
    world.objects.watches[0].shown = json!({"mode": "Poll"});
    world.store.publish(&world.objects).await.unwrap();
    assert_eq!(
        world
            .count("select count(*) from watch where shown->>'mode' = 'Poll'")
            .await,
        1
    );
    world.objects.watches.clear();
    world.store.publish(&world.objects).await.unwrap();
    assert_eq!(
        world
            .count("select count(*) from watch where deleted_at is null")
            .await,
        0
    );
}

#[sqlx::test(migrations = false)]
async fn an_empty_database_is_migrated_and_a_newer_one_refused(pool: PgPool) {
    let store = fencepost_store::Store::with_pool(pool.clone(), Uuid::new_v4());
    assert_eq!(store.schema().await.unwrap(), SchemaState::Empty);
    let (a, b) = tokio::join!(store.migrate(), store.migrate());
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.now, b.now);
    assert_ne!(a.before.is_none(), b.before.is_none(), "one of them did it");
    assert_eq!(store.schema().await.unwrap(), SchemaState::Usable);
    sqlx::query("update _sqlx_migrations set version = 0")
        .execute(&pool)
        .await
        .unwrap();
    let older = SchemaState::Older {
        database: 0,
        binary: a.now,
    };
    assert_eq!(store.schema().await.unwrap(), older);
    sqlx::query("update _sqlx_migrations set version = 9999")
        .execute(&pool)
        .await
        .unwrap();
    let refused = store.migrate().await.unwrap_err();
    assert!(
        matches!(refused, MigrateError::Newer { database: 9999, binary } if binary == a.now),
        "{refused}"
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn only_the_newest_claim_publishes(pool: PgPool) {
    let mut world = World::new(pool).await;
    let other = world.other_replica();
    let first = world.store.claim_publishing().await.unwrap();
    assert!(world.store.claim_stands(first).await.unwrap());
    assert!(world.store.publish_as(first, &world.objects).await.unwrap());
    let second = other.claim_publishing().await.unwrap();
    assert!(second > first);
    assert!(!world.store.claim_stands(first).await.unwrap());

    // The former publisher was paused, and wakes up with what it last saw.
    world.objects.servers.clear();
    assert!(!world.store.publish_as(first, &world.objects).await.unwrap());
    assert_eq!(
        world
            .count("select count(*) from server where deleted_at is null")
            .await,
        1,
        "nothing was changed"
    );
    assert!(other.publish_as(second, &world.objects).await.unwrap());
    assert_eq!(
        world
            .count("select count(*) from server where deleted_at is null")
            .await,
        0
    );
}

/// Events name server and subject by name, and are compared by epoch and generation.
#[sqlx::test(migrations = "../migrations")]
async fn what_is_recreated_is_newer_than_what_it_was(pool: PgPool) {
    let mut world = World::new(pool).await;
    let first = world.active("docs://a").await;
    world.objects.servers[0].uid = Uuid::new_v4();
    world.store.publish(&world.objects).await.unwrap();
    let server = world.objects.servers[0].uid;
    let lease = world
        .store
        .acquire_lease(server, world.session.subject, TTL)
        .await
        .unwrap();
    world.session.server = server;
    world.session.generation = lease.unwrap();
    let second = world.active("docs://a").await;
    assert_ne!(second.id, first.id);
    assert!(second.generation > first.generation);
    let other = world.active("docs://b").await;
    assert_eq!(
        other.generation, first.generation,
        "a URI without a past begins anew"
    );

    world.objects.subjects[0].uid = Uuid::new_v4();
    world.store.publish(&world.objects).await.unwrap();
    let before = world
        .count("select max(epoch) from subject where deleted_at is not null")
        .await;
    let after = world
        .count("select epoch from subject where deleted_at is null")
        .await;
    assert!(after > before, "{after} after {before}");
}

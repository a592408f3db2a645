//! What readers of the outbox see.

use fencepost_store::{EventShape, OutboxFilter};
use serde_json::json;
use sqlx::{Connection, PgPool};

use crate::ledger::{JSON, Ledger};

const ALL: OutboxFilter = OutboxFilter {
    namespace: None,
    server: None,
    watch: None,
    kind: None,
};
const FULL: EventShape = EventShape {
    content: true,
    supersede: true,
};

/// The number in `advisory::OUTBOX`.
const OUTBOX_LOCK: i64 = 0x6665_6e63_6500_0001;

#[sqlx::test(migrations = "../migrations")]
async fn an_event_has_the_shape_of_the_contract(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger
        .accept("config://service/limits", JSON, r#"{"max_batch":500}"#)
        .await;
    let position = ledger
        .accept("config://service/limits", JSON, r#"{"max_batch":50}"#)
        .await;
    let page = ledger
        .store
        .outbox_after(position - 1, 10, &ALL)
        .await
        .unwrap();
    assert_eq!(
        (page.events.len(), page.through, page.more),
        (1, position, false)
    );
    let event = serde_json::to_value(&page.events[0]).unwrap();
    let data = &event["data"];
    let expected = json!({
        "specversion": "1.0", "id": event["id"], "source": "/agents/config-service",
        "type": "dev.fencepost.resource.accepted", "subject": "config://service/limits", "time": event["time"],
        "datacontenttype": "application/json",
        "data": {"position": position, "epoch": 1, "server": "config-service", "namespace": "agents",
            "subject": "support-agents", "uri": "config://service/limits", "generation": 1, "ordinal": 2,
            "digest": data["digest"], "previousDigest": data["previousDigest"], "mimeType": "application/json",
            "content": null,
            "supersede": {"text": data["supersede"]["text"], "changes": [{"path": "/max_batch", "old": 500, "new": 50}]}}
    });
    assert_eq!(event, expected);
    assert!(data["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_ne!(data["digest"], data["previousDigest"]);
    assert!(
        data["supersede"]["text"]
            .as_str()
            .unwrap()
            .contains("/max_batch was 500, and is 50 now.")
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_reader_never_passes_a_transaction_that_is_still_open(pool: PgPool) {
    let mut ledger = Ledger::new(pool.clone()).await;
    let index = ledger.index("rag", None, None).await;
    let before = ledger.accept("config://a", JSON, "1").await;
    // A writer that has drawn its position and written its row, and has not committed.
    let mut open = sqlx::PgConnection::connect_with(&pool.connect_options())
        .await
        .unwrap();
    let mut tx = open.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock($1)")
        .bind(OUTBOX_LOCK)
        .execute(&mut *tx)
        .await
        .unwrap();
    sqlx::query(
        "insert into outbox (position, id, kind, namespace, server, subject, watches, uri, epoch, generation, ordinal)
         values (nextval('outbox_position'), gen_random_uuid(), 'catalog.published', 'agents', 's', 'x',
                 '{agents/limits}', 'x:', 1, 0, 0)",
    )
    .execute(&mut *tx)
    .await
    .unwrap();
    let later = {
        let (store, pool) = (ledger.store.clone(), pool.clone());
        tokio::spawn(async move {
            let accepted = ledger.accept("config://b", JSON, "1").await;
            drop((store, pool));
            accepted
        })
    };
    let store = fencepost_store::Store::with_pool(pool, uuid::Uuid::new_v4());
    // The later writer stands before the lock.
    loop {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted
             and database = (select oid from pg_database where datname = current_database())",
        )
        .fetch_one(store.pool())
        .await
        .unwrap();
        if waiting > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let page = store.outbox_after(before, 10, &ALL).await.unwrap();
    assert!(page.events.is_empty());
    assert_eq!(page.through, before);
    assert_eq!(
        store
            .deliverables_after(index, before, 10)
            .await
            .unwrap()
            .through,
        before
    );
    tx.commit().await.unwrap();
    let last = later.await.unwrap();
    let page = store.outbox_after(page.through, 10, &ALL).await.unwrap();
    let positions: Vec<i64> = page
        .events
        .iter()
        .map(|event| event.data.position)
        .collect();
    assert_eq!(positions.last(), Some(&last));
    assert_eq!(positions.len(), 2);
    assert!(positions[0] < positions[1]);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_note_is_written_once_and_survives_its_content(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.accept("docs://a", "text/plain", "one\ntwo\n").await;
    let position = ledger.accept("docs://a", "text/plain", "one\nTWO\n").await;
    assert_eq!(
        ledger.store.write_pending_supersedes(0, 1).await.unwrap(),
        position
    );
    let first = ledger
        .store
        .outbox_event(position, FULL)
        .await
        .unwrap()
        .unwrap();
    ledger.sql("delete from content").await;
    let again = ledger
        .store
        .outbox_event(
            position,
            EventShape {
                content: false,
                supersede: true,
            },
        )
        .await
        .unwrap()
        .unwrap();
    assert_eq!(first.data.supersede, again.data.supersede);
    assert_eq!(first.data.content.as_deref(), Some("one\nTWO\n"));
    assert_eq!(first.data.supersede.unwrap().changes[0].path, "line 2");
    assert_eq!(first.id, again.id);
    let bare = ledger
        .store
        .outbox_event(
            position,
            EventShape {
                content: false,
                supersede: false,
            },
        )
        .await
        .unwrap()
        .unwrap();
    assert_eq!(bare.data.supersede, None);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_note_is_absent_for_good_when_a_content_was_not_kept(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.accept("docs://a", "text/plain", "one").await;
    ledger.sql("delete from content").await;
    let position = ledger.accept("docs://a", "text/plain", "two").await;
    let event = ledger
        .store
        .outbox_event(position, FULL)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(event.data.supersede, None);
    assert_eq!(
        ledger
            .count("select count(*) from outbox where position = 2 and supersede_done")
            .await,
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn characters_that_the_database_keeps_not_are_replaced(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger
        .accept("config://a", JSON, r#"{"k\u0000":"a\u0000b"}"#)
        .await;
    let position = ledger
        .accept("config://a", JSON, r#"{"k\u0000":"a\\u0000b"}"#)
        .await;
    let event = ledger
        .store
        .outbox_event(position, FULL)
        .await
        .unwrap()
        .unwrap();
    let change = &event.data.supersede.unwrap().changes[0];
    assert_eq!(change.path, "/k\u{fffd}");
    assert_eq!(change.old, Some(json!("a\u{fffd}b")));
    assert_eq!(change.new, Some(json!("a\\u0000b")));
}

#[sqlx::test(migrations = "../migrations")]
async fn what_is_content_is_withheld_once_the_permission_is_withdrawn_and_stays_so(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.accept("config://a", JSON, r#"{"secret":1}"#).await;
    let position = ledger.accept("config://a", JSON, r#"{"secret":2}"#).await;
    let before = ledger
        .store
        .outbox_event(position, FULL)
        .await
        .unwrap()
        .unwrap();
    assert!(before.data.content.is_some() && before.data.supersede.is_some());
    for revoked in [true, false] {
        ledger.set_revoked(revoked).await;
        let event = ledger
            .store
            .outbox_event(position, FULL)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (event.data.content, event.data.supersede),
            (None, None),
            "revoked: {revoked}"
        );
        assert_eq!(
            event.data.digest, before.data.digest,
            "digests stay readable"
        );
        let pulled = ledger
            .store
            .outbox_after(position - 1, 1, &ALL)
            .await
            .unwrap();
        assert_eq!(pulled.events[0].data.supersede, None);
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn filters_hold_together_and_pages_end_at_the_head(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.watch("docs://other", "docs", 1).await;
    for n in 0..5 {
        ledger.accept("config://a", JSON, &n.to_string()).await;
        ledger
            .accept("docs://other", "text/plain", &n.to_string())
            .await;
    }
    let filter = OutboxFilter {
        watch: Some("agents/docs".into()),
        kind: Some("dev.fencepost.resource.accepted".into()),
        server: Some("agents/config-service".into()),
        namespace: Some("agents".into()),
    };
    let first = ledger.store.outbox_after(0, 2, &filter).await.unwrap();
    assert_eq!(
        (first.events.len(), first.through, first.more),
        (2, 4, true)
    );
    let rest = ledger
        .store
        .outbox_after(first.through, 100, &filter)
        .await
        .unwrap();
    assert_eq!((rest.events.len(), rest.through, rest.more), (3, 10, false));
    assert!(
        rest.events
            .iter()
            .all(|event| event.subject == "docs://other")
    );
    let none = OutboxFilter {
        kind: Some("resource.tombstoned".into()),
        ..OutboxFilter::default()
    };
    let none = ledger.store.outbox_after(0, 100, &none).await.unwrap();
    assert_eq!((none.events.len(), none.through), (0, 10));
}

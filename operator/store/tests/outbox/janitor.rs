//! What the janitor takes and what it leaves.

use fencepost_store::{Store, janitor::Janitor};
use sqlx::{Connection, PgPool};
use uuid::Uuid;

use crate::ledger::{JSON, Ledger};

const AGE_CONTENT: &str = "update content set touched_at = now() - interval '1 hour'";

#[sqlx::test(migrations = "../migrations")]
async fn content_goes_when_nobody_needs_it_any_more(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.watch("config://a", "limits", 1).await;
    ledger.accept("config://a", JSON, "1").await;
    ledger.accept("config://a", JSON, "2").await;
    let mut janitor = Janitor::new(ledger.store.clone());
    assert_eq!(janitor.sweep().await.unwrap().contents, 0, "too young");
    ledger.sql(AGE_CONTENT).await;
    assert_eq!(
        janitor.sweep().await.unwrap().contents,
        0,
        "a note waits for it"
    );
    let head = ledger.store.write_pending_supersedes(0, 100).await.unwrap();
    assert_eq!(janitor.sweep().await.unwrap().contents, 1);
    let event = ledger
        .store
        .outbox_after(head - 1, 1, &fencepost_store::OutboxFilter::default())
        .await
        .unwrap();
    assert!(event.events[0].data.supersede.is_some());
    assert_eq!(ledger.count("select count(*) from content").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn content_stays_until_every_index_that_gets_it_has_confirmed(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let index = ledger.index("rag", None, None).await;
    ledger.objects.indexes[0].include_content = true;
    ledger.store.publish(&ledger.objects).await.unwrap();
    ledger.watch("config://a", "limits", 1).await;
    let first = ledger.accept("config://a", JSON, "1").await;
    ledger.accept("config://a", JSON, "2").await;
    ledger.store.write_pending_supersedes(0, 100).await.unwrap();
    ledger.sql(AGE_CONTENT).await;
    let mut janitor = Janitor::new(ledger.store.clone());
    assert_eq!(
        janitor.sweep().await.unwrap().contents,
        0,
        "the first try may have carried it"
    );
    ledger
        .store
        .record_acknowledged(index, first, true)
        .await
        .unwrap();
    assert_eq!(janitor.sweep().await.unwrap().contents, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn events_go_when_confirmed_or_very_old_and_the_newest_stays(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let index = ledger.index("slow", None, None).await;
    for n in 0..6 {
        ledger.accept("config://a", JSON, &n.to_string()).await;
    }
    let mut janitor = Janitor::new(ledger.store.clone());
    ledger
        .store
        .record_acknowledged(index, 2, true)
        .await
        .unwrap();
    assert_eq!(janitor.sweep().await.unwrap().events, 0, "too young");
    ledger
        .sql("update outbox set created_at = now() - interval '8 days'")
        .await;
    let swept = janitor.sweep().await.unwrap();
    assert_eq!((swept.events, swept.unconfirmed_events), (2, 0));
    ledger
        .sql("update outbox set created_at = now() - interval '32 days'")
        .await;
    let swept = janitor.sweep().await.unwrap();
    assert_eq!((swept.events, swept.unconfirmed_events), (3, 3));
    assert_eq!(ledger.store.outbox_head().await.unwrap(), 6);
    assert_eq!(
        ledger
            .store
            .deliverables_after(index, 2, 10)
            .await
            .unwrap()
            .events
            .len(),
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn old_reads_go_but_not_the_newest_nor_those_that_brought_a_version(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.accept("config://a", JSON, "1").await;
    for _ in 0..249 {
        ledger.read("config://a", JSON, "1").await;
    }
    let mut janitor = Janitor::new(ledger.store.clone());
    assert_eq!(janitor.sweep().await.unwrap().reads, 0);
    // A settled read is never changed, not even here: the trigger has to look away for the test.
    ledger
        .sql("alter table read disable trigger read_settled_once")
        .await;
    ledger
        .sql("update read set issued_at = now() - interval '8 days'")
        .await;
    ledger
        .sql("alter table read enable trigger read_settled_once")
        .await;
    let mut janitor = Janitor::new(ledger.store.clone());
    assert_eq!(janitor.sweep().await.unwrap().reads, 49);
    assert_eq!(ledger.count("select count(*) from read").await, 201);
    assert_eq!(
        ledger
            .count("select count(*) from read where ordinal = 1")
            .await,
        1
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn a_snapshot_that_is_held_open_breaks_nothing(pool: PgPool) {
    let mut ledger = Ledger::new(pool.clone()).await;
    for n in 0..5 {
        ledger.accept("config://a", JSON, &n.to_string()).await;
    }
    ledger.sql("insert into mark (resource_id, at, kind, generation) select id, now() - interval '8 days', 'gap', 1 from resource").await;
    ledger
        .sql("insert into sample values (gen_random_uuid(), now() - interval '32 days', 5, '{}')")
        .await;
    ledger
        .sql("update outbox set created_at = now() - interval '8 days'")
        .await;
    let mut held = sqlx::PgConnection::connect_with(&pool.connect_options())
        .await
        .unwrap();
    let mut snapshot = held
        .begin_with("begin isolation level repeatable read")
        .await
        .unwrap();
    let seen: i64 = sqlx::query_scalar("select count(*) from outbox")
        .fetch_one(&mut *snapshot)
        .await
        .unwrap();

    let swept = Janitor::new(ledger.store.clone()).sweep().await.unwrap();
    assert_eq!((swept.events, swept.marks, swept.samples), (4, 1, 1));
    let other = Store::with_pool(pool, Uuid::new_v4());
    assert_eq!(
        Janitor::new(other).sweep().await.unwrap().events,
        0,
        "a second janitor finds nothing left"
    );
    let still: i64 = sqlx::query_scalar("select count(*) from outbox")
        .fetch_one(&mut *snapshot)
        .await
        .unwrap();
    assert_eq!((seen, still), (5, 5));
}

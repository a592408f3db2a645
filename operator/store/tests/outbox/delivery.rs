//! Positions and leases of derived indexes.

use std::time::Duration;

use fencepost_store::{DeliveryFailure, Store};
use sqlx::PgPool;
use uuid::Uuid;

use crate::ledger::{JSON, Ledger};

#[sqlx::test(migrations = "../migrations")]
async fn an_index_is_told_what_it_asked_for_and_what_came_after_it(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let old = ledger.accept("config://a", JSON, "0").await;
    let all = ledger.index("all", None, None).await;
    let docs = ledger.index("docs", Some(&["agents/docs"]), None).await;
    let none = ledger.index("none", Some(&[]), None).await;
    let tombs = ledger
        .index("tombs", None, Some(&["resource.tombstoned"]))
        .await;
    assert_eq!(
        ledger
            .store
            .load_index(all)
            .await
            .unwrap()
            .unwrap()
            .acknowledged_position,
        old
    );
    ledger.watch("docs://b", "docs", 1).await;
    let limits = ledger.accept("config://a", JSON, "1").await;
    let other = ledger.accept("docs://b", "text/plain", "1").await;
    let told = async |index| {
        let read = ledger
            .store
            .deliverables_after(index, old, 100)
            .await
            .unwrap();
        assert_eq!(read.through, other);
        read.events
            .iter()
            .map(|event| event.position)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(all).await, [limits, other]);
    assert_eq!(told(docs).await, [other]);
    assert_eq!(told(none).await, [0_i64; 0]);
    assert_eq!(told(tombs).await, [0_i64; 0]);
}

#[sqlx::test(migrations = "../migrations")]
async fn the_database_clock_alone_says_who_delivers(pool: PgPool) {
    let mut ledger = Ledger::new(pool.clone()).await;
    let index = ledger.index("rag", None, None).await;
    let (one, two) = (ledger.store.clone(), Store::with_pool(pool, Uuid::new_v4()));
    let ttl = Duration::from_mins(1);
    assert!(one.claim_delivery(index, ttl).await.unwrap());
    assert!(one.claim_delivery(index, ttl).await.unwrap(), "renewed");
    assert!(!two.claim_delivery(index, ttl).await.unwrap());
    ledger
        .sql("update delivery_lease set expires_at = clock_timestamp() - interval '1 second'")
        .await;
    assert!(two.claim_delivery(index, ttl).await.unwrap());
    // Whoever lost the lease has no word in failures any more.
    let failure = DeliveryFailure {
        attempts: 3,
        error: "x\u{7}y".repeat(500),
        retry_in: ttl,
    };
    one.record_failure(index, &failure).await.unwrap();
    assert_eq!(one.load_index(index).await.unwrap().unwrap().attempts, 0);
    two.record_failure(index, &failure).await.unwrap();
    let row = two.load_index(index).await.unwrap().unwrap();
    assert_eq!(row.attempts, 3);
    assert!(row.retry_at.is_some());
    assert!(
        row.last_error
            .is_some_and(|error| error.chars().count() == 500 && !error.contains('\u{7}'))
    );
    two.release_delivery(index).await.unwrap();
    assert!(one.claim_delivery(index, ttl).await.unwrap());
    assert_eq!(one.release_all_deliveries().await.unwrap(), 1);
    assert!(two.claim_delivery(index, ttl).await.unwrap());
}

#[sqlx::test(migrations = "../migrations")]
async fn positions_never_go_back(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    let index = ledger.index("rag", None, None).await;
    let store = &ledger.store;
    store.record_delivered(index, 5).await.unwrap();
    store.record_acknowledged(index, 3, true).await.unwrap();
    store.record_delivered(index, 4).await.unwrap();
    store.record_acknowledged(index, 2, true).await.unwrap();
    let row = store.load_index(index).await.unwrap().unwrap();
    assert_eq!((row.delivered_position, row.acknowledged_position), (5, 3));
    store.record_acknowledged(index, 9, false).await.unwrap();
    let row = &store.load_indexes().await.unwrap()[0];
    assert_eq!((row.delivered_position, row.acknowledged_position), (9, 9));
}

use std::time::Duration;

use chrono::Utc;
use fencepost_store::SampleCounts;
use sqlx::PgPool;

use crate::ledger::{JSON, Ledger};

#[sqlx::test(migrations = "../migrations")]
async fn samples_come_back_as_they_were_written_oldest_first(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let from = Utc::now() - Duration::from_mins(1);
    for n in 1..=3 {
        let mut counts = SampleCounts {
            seconds: 5.5,
            versions: n,
            index_lag_seconds: Some(0.5),
            ..SampleCounts::default()
        };
        counts.reads.insert("Poll".into(), n);
        counts.converged(0.3);
        ledger.store.insert_sample(&counts).await.unwrap();
    }
    let samples = ledger
        .store
        .samples_between(from, Utc::now() + Duration::from_mins(1))
        .await
        .unwrap();
    let versions: Vec<u64> = samples
        .iter()
        .map(|sample| sample.counts.versions)
        .collect();
    assert_eq!(versions, [1, 2, 3]);
    assert!((samples[0].counts.seconds - 5.5).abs() < f64::EPSILON);
    assert_eq!(samples[0].counts.convergence_quantile(0.5), Some(0.5));
    assert_eq!(samples[0].replica, ledger.store.replica());
    assert!(
        ledger
            .store
            .samples_between(from - Duration::from_mins(1), from)
            .await
            .unwrap()
            .is_empty()
    );
}

#[sqlx::test(migrations = "../migrations")]
async fn gauges_count_what_this_replica_looks_after(pool: PgPool) {
    let mut ledger = Ledger::new(pool.clone()).await;
    let index = ledger.index("rag", None, None).await;
    assert!(
        ledger
            .store
            .claim_delivery(index, Duration::from_mins(1))
            .await
            .unwrap()
    );
    ledger.accept("config://a", JSON, "1").await;
    ledger.watch("config://b", "limits", 1).await;
    ledger
        .sql("update outbox set created_at = now() - interval '40 seconds'")
        .await;

    let gauges = ledger.store.gauges().await.unwrap();
    let states: Vec<_> = gauges
        .resources
        .iter()
        .map(|row| (row.server.as_str(), row.state.as_str(), row.count))
        .collect();
    assert_eq!(states, [("config-service", "ACTIVE", 2)]);
    assert_eq!(gauges.stale_resources, 1, "config://b was never read");
    assert!(gauges.outbox_lags[0].seconds >= 40.0, "{gauges:?}");

    let other = fencepost_store::Store::with_pool(pool, uuid::Uuid::new_v4());
    assert_eq!(
        other.gauges().await.unwrap(),
        fencepost_store::Gauges::default()
    );
}

//! The first screen: objectives from samples, trouble from the ledger, calm only when there is none.

use fencepost_ledger::Trigger;
use fencepost_store::SampleCounts;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::ledger::Ledger;

fn objective<'a>(overview: &'a Value, name: &str) -> &'a Value {
    overview["objectives"]
        .as_array()
        .unwrap()
        .iter()
        .find(|objective| objective["name"] == name)
        .unwrap()
}

fn kinds(overview: &Value) -> Vec<&str> {
    overview["attention"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["kind"].as_str().unwrap())
        .collect()
}

#[sqlx::test(migrations = "./migrations")]
async fn without_samples_there_is_no_data_and_calm_has_a_beginning(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    let overview = ledger.json("/api/v1/overview").await;
    for objective in overview["objectives"].as_array().unwrap() {
        assert_eq!(
            (&objective["state"], &objective["value"]),
            (&json!("NoData"), &Value::Null),
            "{}",
            objective["name"]
        );
    }
    assert!(kinds(&overview).is_empty(), "{overview}");
    assert!(overview["calmSince"].is_string());
    assert_eq!(
        (&overview["empty"], &overview["stale"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(
        overview["resources"],
        json!([{"state": "ACTIVE", "count": 1}])
    );
    let server = &overview["servers"][0];
    assert_eq!(
        (&server["name"], &server["ready"], &server["sessions"]),
        (&json!("config-service"), &json!(true), &json!(1))
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn samples_of_replicas_become_objectives_and_series(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let mut counts = SampleCounts {
        seconds: 10.0,
        notifications: 20,
        versions: 10,
        notification_reads: 11,
        notification_versions: 10,
        index_lag_seconds: Some(1.5),
        stale_resources: Some(0),
        ..SampleCounts::default()
    };
    counts.reads.insert("Notification".into(), 11);
    counts.outcomes.insert("accepted".into(), 10);
    counts.converged(0.2);
    ledger.store().insert_sample(&counts).await.unwrap();
    let overview = ledger.json("/api/v1/overview?range=15m").await;
    for (name, value) in [
        ("fence_violations", 0.0),
        ("converged_60s", 1.0),
        ("read_amplification", 1.1),
        ("index_lag", 1.5),
    ] {
        let objective = objective(&overview, name);
        assert_eq!(
            (&objective["state"], &objective["value"]),
            (&json!("Holds"), &json!(value)),
            "{name}"
        );
        assert_eq!(objective["points"].as_array().unwrap().len(), 1, "{name}");
    }
    let series = ledger.json("/api/v1/series?range=15m").await;
    assert_eq!(series["stepSeconds"], 10.0);
    let sample = &series["samples"][0];
    assert_eq!(
        sample["reads"],
        json!([{"trigger": "Notification", "perSecond": 1.1}])
    );
    assert_eq!(
        (
            &sample["notificationsPerSecond"],
            &sample["versionsPerSecond"]
        ),
        (&json!(2.0), &json!(1.0))
    );
    ledger
        .store()
        .insert_sample(&SampleCounts {
            violations: 1,
            ..SampleCounts::default()
        })
        .await
        .unwrap();
    let overview = ledger.json("/api/v1/overview").await;
    assert_eq!(
        objective(&overview, "fence_violations")["state"],
        "Violated"
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn a_week_of_samples_is_at_most_240_points(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    ledger.sql(
        "insert into sample (replica, at, seconds, counts) \
         select gen_random_uuid(), now() - n * interval '1 minute', 60, '{\"versions\": 6}' from generate_series(1, 10000) n",
    )
    .await;
    let series = ledger.json("/api/v1/series?range=7d").await;
    let samples = series["samples"].as_array().unwrap();
    assert!(
        samples.len() <= 240 && samples.len() > 200,
        "{}",
        samples.len()
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn each_trouble_is_a_group_and_ends_the_calm(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    for uri in ["docs:///stale", "docs:///silent", "docs:///leaving"] {
        let id = ledger.watched(uri).await;
        ledger.read(id, Trigger::Baseline, "1").await;
        if uri.ends_with("silent") {
            ledger.read(id, Trigger::Audit, "2").await;
        }
    }
    ledger
        .sql(
            "update resource set confirmed_at = now() - interval '5 minutes' where uri = 'docs:///stale'; \
             update resource set presence = 'TOMBSTONE_PENDING', tombstone_since = now() where uri = 'docs:///leaving'; \
             update server set reason = 'CONNECT_FAILED', reason_since = now() - interval '1 minute'; \
             update derived_index set last_error = 'timeout'; \
             update watch set conditions = '[{\"type\": \"SubscriptionLost\", \"reason\": \"X\", \"message\": \"m\", \"since\": \"2026-01-01T00:00:00Z\"}]'",
        )
        .await;
    let overview = ledger.json("/api/v1/overview").await;
    assert_eq!(
        kinds(&overview),
        [
            "servers_away",
            "resources_stale",
            "delivery_unproven",
            "resources_tombstoned",
            "indexes_behind",
            "watches_troubled"
        ]
    );
    assert!(overview["calmSince"].is_null());
    for group in overview["attention"].as_array().unwrap() {
        assert_eq!(group["count"], 1, "{group}");
        assert_eq!(group["examples"].as_array().unwrap().len(), 1, "{group}");
        assert!(group["link"].as_str().unwrap().starts_with('/'));
    }
    assert_eq!(overview["attention"][1]["examples"][0], "docs:///stale");
}

#[sqlx::test(migrations = "./migrations")]
async fn an_empty_ledger_says_that_it_is_empty(pool: PgPool) {
    let mut ledger = Ledger::new(pool).await;
    ledger.objects = fencepost_store::Published::default();
    ledger.state.store.publish(&ledger.objects).await.unwrap();
    let overview = ledger.json("/api/v1/overview").await;
    assert_eq!(
        (&overview["empty"], &overview["servers"]),
        (&json!(true), &json!([]))
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn an_invalidation_that_nobody_answers_is_a_late_convergence(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger
        .sql("update resource set dirty_since = now() - interval '61 seconds'")
        .await;
    let overview = ledger.json("/api/v1/overview").await;
    assert_eq!(objective(&overview, "converged_60s")["state"], "Violated");
}

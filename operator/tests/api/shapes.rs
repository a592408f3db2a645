//! The shapes that others are written against: names and values of the contract.

use fencepost_ledger::Trigger;
use serde_json::json;
use sqlx::PgPool;

use crate::ledger::{Ledger, SERVER, SUBJECT, digest_of};

#[sqlx::test(migrations = "./migrations")]
async fn a_resource_has_the_fields_of_the_contract(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    ledger
        .read(id, Trigger::Baseline, r#"{"max_batch":500}"#)
        .await;
    let page = ledger
        .json("/api/v1/resources?state=ACTIVE&watch=agents/service-limits&q=LIMITS")
        .await;
    let mut item = page["items"][0].clone();
    for time in ["acceptedAt", "confirmedAt", "staleAfter"] {
        let text = item[time].as_str().unwrap().to_owned();
        assert!(
            text.ends_with('Z') && text.parse::<chrono::DateTime<chrono::Utc>>().is_ok(),
            "{time}: {text}"
        );
        item[time] = json!("<time>");
    }
    let mut expected = json!({
        "id": id.to_string(), "uri": "config://service/limits",
        "server": {"namespace": "agents", "name": "config-service", "uid": SERVER.to_string()},
        "subject": {"namespace": "agents", "name": "support-agents", "uid": SUBJECT.to_string()},
        "watches": [{"namespace": "agents", "name": "service-limits"}],
        "state": "ACTIVE", "refresh": "IDLE", "mode": "Subscribe", "cohort": true,
        "generation": 1, "issuedOrdinal": 1, "ordinal": 1,
        "digest": digest_of(r#"{"max_batch":500}"#).to_string(), "mimeType": "application/json", "size": 17,
        "acceptedAt": "<time>", "confirmedAt": "<time>", "staleAfter": "<time>", "stale": false, "reason": null
    });
    assert_eq!(item, expected);
    assert_eq!(page["next"], json!(null));

    let mut detail = ledger.json(&format!("/api/v1/resources/{id}")).await;
    for time in ["acceptedAt", "confirmedAt", "staleAfter"] {
        detail[time] = json!("<time>");
    }
    let more = json!({
        "maxStalenessSeconds": 60.0, "readIntervalSeconds": 30.0, "storesContent": true, "closeOrdinal": null,
        "sessionGeneration": 1, "conditions": []
    });
    expected
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    assert_eq!(detail, expected);
}

#[sqlx::test(migrations = "./migrations")]
async fn refresh_tells_a_read_in_flight_and_an_update_that_was_seen(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    let path = format!("/api/v1/resources/{id}");
    let read = ledger.issue(id, Trigger::Baseline).await;
    let detail = ledger.json(&path).await;
    assert_eq!(
        (&detail["refresh"], &detail["stale"], &detail["reason"]),
        (&json!("READ_PENDING"), &json!(true), &json!("NOT_READ_YET"))
    );
    ledger.settle(id, read, crate::ledger::json_text("1")).await;
    ledger.sql("update resource set dirty_since = now()").await;
    assert_eq!(ledger.json(&path).await["refresh"], "UPDATE_SEEN");
}

#[sqlx::test(migrations = "./migrations")]
async fn what_is_abnormal_about_a_resource_is_a_condition(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger.read(id, Trigger::Audit, "2").await;
    ledger
        .store()
        .set_flags(&[(id, true, false)])
        .await
        .unwrap();
    ledger
        .sql("update resource set confirmed_at = now() - interval '2 minutes'")
        .await;
    let detail = ledger.json(&format!("/api/v1/resources/{id}")).await;
    let kinds: Vec<_> = detail["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["type"].as_str().unwrap(), c["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("ContentStale", "PAST_MAX_STALENESS"),
            ("DeliveryUnproven", "CHANGE_NOT_ANNOUNCED"),
            ("Volatile", "CHANGES_ON_NEARLY_EVERY_READ")
        ]
    );
    assert_eq!(detail["conditions"][0]["since"], detail["staleAfter"]);
    ledger
        .store()
        .set_flags(&[(id, false, true)])
        .await
        .unwrap();
    let detail = ledger.json(&format!("/api/v1/resources/{id}")).await;
    assert_eq!(
        detail["conditions"].as_array().unwrap().len(),
        1,
        "a proven delivery is no condition"
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn servers_subjects_watches_and_indexes_say_what_has_come_of_them(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let loads = [(("agents".to_owned(), "config-service".to_owned()), 120.0)];
    ledger
        .state
        .reads_per_hour
        .store(std::sync::Arc::new(loads.into()));
    let id = ledger.watched("config://service/limits").await;
    ledger.read(id, Trigger::Baseline, "1").await;

    let server = ledger.json("/api/v1/servers").await["items"][0].clone();
    assert_eq!(
        (&server["name"], &server["ready"]),
        (&json!("config-service"), &json!(true))
    );
    assert_eq!(server["readsPerHour"], 120.0);
    assert_eq!(
        server["resources"],
        json!([{"state": "ACTIVE", "count": 1}])
    );
    assert_eq!(server["sessions"][0]["subject"], "agents/support-agents");
    assert_eq!(server["sessions"][0]["sessionGeneration"], 1);
    assert_eq!(
        server["sessions"][0]["receiptDigest"],
        format!("sha256:{}", "07".repeat(32))
    );

    let subject = ledger.json("/api/v1/subjects").await["items"][0].clone();
    assert_eq!(
        (&subject["name"], &subject["epoch"], &subject["revoked"]),
        (&json!("support-agents"), &json!(1), &json!(false))
    );

    let watch = ledger.json("/api/v1/watches").await["items"][0].clone();
    assert_eq!(
        (&watch["name"], &watch["convergedRatio"], &watch["stale"]),
        (&json!("service-limits"), &json!(1.0), &json!(0))
    );
    assert_eq!(watch["resources"], json!([{"state": "ACTIVE", "count": 1}]));

    let index = ledger.json("/api/v1/indexes").await["items"][0].clone();
    assert_eq!(
        (&index["name"], &index["pending"], &index["headPosition"]),
        (&json!("rag"), &json!(1), &json!(1))
    );
    assert!(index["lagSeconds"].as_f64().unwrap() >= 0.0);
    ledger
        .sql("update outbox set created_at = now() - interval '2 minutes'")
        .await;
    let index = ledger.json("/api/v1/indexes").await["items"][0].clone();
    assert!(index["lagSeconds"].as_f64().unwrap() >= 120.0);
    assert_eq!(index["conditions"][0]["type"], "IndexBehind");
    ledger
        .sql("update derived_index set delivered_position = 1, acknowledged_position = 1")
        .await;
    let index = ledger.json("/api/v1/indexes").await["items"][0].clone();
    assert_eq!(
        (
            &index["pending"],
            &index["lagSeconds"],
            &index["conditions"]
        ),
        (&json!(0), &json!(0.0), &json!([]))
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn a_server_that_is_away_says_why(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    ledger.sql("update server set reason = 'CONNECT_FAILED', message = 'connection refused', reason_since = now()").await;
    let server = ledger.json("/api/v1/servers").await["items"][0].clone();
    assert_eq!(server["ready"], false);
    assert_eq!(
        (
            &server["conditions"][0]["type"],
            &server["conditions"][0]["reason"]
        ),
        (&json!("ServerUnavailable"), &json!("CONNECT_FAILED"))
    );
}

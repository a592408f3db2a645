//! The outbox for consumers that pull.

use fencepost_ledger::Trigger;
use serde_json::json;
use sqlx::PgPool;

use crate::ledger::{Ledger, digest_of};

#[sqlx::test(migrations = "./migrations")]
async fn events_have_the_shape_of_the_contract_and_follow_their_positions(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://service/limits").await;
    ledger
        .read(id, Trigger::Baseline, r#"{"max_batch":500}"#)
        .await;
    ledger
        .read(id, Trigger::Notification, r#"{"max_batch":50}"#)
        .await;
    let first = ledger.json("/api/v1/outbox?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let mut second = ledger.json(&format!("/api/v1/outbox?after={next}")).await;
    assert!(second["next"].is_null());
    let event = &mut second["items"][0];
    assert!(event["id"].as_str().unwrap().parse::<uuid::Uuid>().is_ok());
    assert!(event["time"].as_str().unwrap().ends_with('Z'));
    event["id"] = json!("<id>");
    event["time"] = json!("<time>");
    let text = event["data"]["supersede"]["text"].take();
    assert!(
        text.as_str()
            .unwrap()
            .contains("/max_batch was 500, and is 50 now.")
    );
    assert_eq!(
        *event,
        json!({
            "specversion": "1.0", "id": "<id>", "source": "/agents/config-service",
            "type": "dev.fencepost.resource.accepted", "subject": "config://service/limits", "time": "<time>",
            "datacontenttype": "application/json",
            "data": {
                "position": 2, "epoch": 1, "server": "config-service", "namespace": "agents", "subject": "support-agents",
                "uri": "config://service/limits", "generation": 1, "ordinal": 2,
                "digest": digest_of(r#"{"max_batch":50}"#).to_string(),
                "previousDigest": digest_of(r#"{"max_batch":500}"#).to_string(),
                "mimeType": "application/json", "content": null,
                "supersede": {"text": null, "changes": [{"path": "/max_batch", "old": 500, "new": 50}]}
            }
        })
    );
}

#[sqlx::test(migrations = "./migrations")]
async fn filters_select_events(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    for (query, count) in [
        ("namespace=agents", 1),
        ("namespace=others", 0),
        (
            "server=agents/config-service&watch=agents/service-limits",
            1,
        ),
        ("watch=agents/another", 0),
        ("kind=resource.accepted", 1),
        ("kind=dev.fencepost.resource.tombstoned", 0),
        ("after=1", 0),
    ] {
        let page = ledger.json(&format!("/api/v1/outbox?{query}")).await;
        assert_eq!(page["items"].as_array().unwrap().len(), count, "{query}");
    }
}

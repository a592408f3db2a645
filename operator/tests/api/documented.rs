//! The `OpenAPI` document and the router say the same.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use fencepost::api::{document, paths};
use fencepost_ledger::Trigger;
use serde_json::Value;
use sqlx::PgPool;

use crate::ledger::Ledger;

#[test]
fn every_route_is_documented_and_nothing_else() {
    let documented: BTreeSet<String> = document().paths.paths.keys().cloned().collect();
    let routed: BTreeSet<String> = paths().into_iter().map(str::to_owned).collect();
    assert_eq!(documented, routed);
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let document = serde_json::to_value(document()).unwrap();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 30);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                references.push(reference.clone());
            }
            members
                .values()
                .for_each(|member| collect(member, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[sqlx::test(migrations = "./migrations")]
async fn every_documented_path_answers_and_takes_its_documented_parameters(pool: PgPool) {
    let ledger = Ledger::new(pool).await;
    let id = ledger.watched("config://a").await;
    ledger.read(id, Trigger::Baseline, "1").await;
    ledger.read(id, Trigger::Poll, "2").await;
    ledger.state.shutdown.cancel();
    let document = ledger.json("/api/openapi.json").await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let address = path
            .replace("{id}", &id.to_string())
            .replace("{ordinal}", "1");
        let parameters = item["get"]["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut query = Vec::new();
        for parameter in &parameters {
            let name = parameter["name"].as_str().unwrap();
            match parameter["in"].as_str().unwrap() {
                "path" => assert!(path.contains(&format!("{{{name}}}")), "{path}: {name}"),
                "query" => query.push(format!("{name}={}", example(path, name))),
                other => assert_eq!((other, name), ("header", "If-None-Match"), "{path}"),
            }
            assert!(
                parameter["description"].is_string(),
                "{path}: {name} is not described"
            );
        }
        // `after` of a list is opaque; of the outbox it is a position.
        query.retain(|pair| path.ends_with("/outbox") || !pair.starts_with("after="));
        let answer = ledger.get(&format!("{address}?{}", query.join("&"))).await;
        assert_eq!(
            answer.status,
            StatusCode::OK,
            "{path}?{query:?}: {}",
            String::from_utf8_lossy(&answer.bytes)
        );
        assert!(!item["get"]["responses"]["200"].is_null(), "{path}");
    }
}

fn example(path: &str, name: &str) -> &'static str {
    match name {
        "limit" => "5",
        "after" => "0",
        "state" => "ACTIVE",
        "server" => "agents/config-service",
        "subject" => "agents/support-agents",
        "watch" => "agents/service-limits",
        "stale" => "false",
        "q" => "config",
        "range" => "1h",
        "from" => "1",
        "to" => "2",
        "fresh" => "required",
        "namespace" => "agents",
        "kind" => "resource.accepted",
        _ => panic!("{path}: no example of {name}"),
    }
}

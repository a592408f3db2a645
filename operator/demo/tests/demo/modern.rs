//! 2026-07-28: requests that stand alone, and the listen stream.

use serde_json::{Value, json};

use crate::{
    Demo,
    client::{self, Events, LIMIT, is_list_changed, is_update},
};

async fn post(url: &str, method: &str, mut params: Value) -> reqwest::Response {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut request = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(uri) = params["uri"].as_str() {
        request = request.header("mcp-name", uri);
    }
    request
        .json(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
        .send()
        .await
        .unwrap()
}

async fn call(url: &str, method: &str, params: Value) -> Value {
    client::answer(post(url, method, params).await).await
}

async fn listen(url: &str, uris: &[&str]) -> Events {
    let params =
        json!({"notifications": {"resourcesListChanged": true, "resourceSubscriptions": uris}});
    let mut events = Events::of(post(url, "subscriptions/listen", params).await);
    let acknowledged = events
        .until("acknowledgement", |_| true)
        .await
        .pop()
        .unwrap();
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
    events
}

#[tokio::test]
async fn discovers_lists_and_reads_without_a_session() {
    let demo = Demo::start().await;
    let discovered = call(&demo.url(), "server/discover", json!({})).await;
    let versions = discovered["result"]["supportedVersions"]
        .as_array()
        .unwrap();
    assert!(
        versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")),
        "{versions:?}"
    );
    assert_eq!(
        discovered["result"]["capabilities"]["resources"],
        json!({"subscribe": true, "listChanged": true})
    );

    let response = post(&demo.url(), "resources/list", json!({})).await;
    assert_eq!(response.headers().get("mcp-session-id"), None);
    let list = client::answer(response).await;
    assert_eq!(list["result"]["resultType"], "complete");
    assert_eq!(list["result"]["resources"].as_array().unwrap().len(), 3);

    let read = call(
        &demo.url(),
        "resources/read",
        json!({"uri": "docs:///limits.json"}),
    )
    .await;
    assert_eq!(read["result"]["resultType"], "complete");
    assert_eq!(
        read["result"]["contents"][0]["mimeType"],
        "application/json"
    );
    assert_eq!(
        read["result"]["contents"][0]["text"],
        r#"{"max_batch": 500}"#
    );
}

#[tokio::test]
async fn an_unknown_version_is_refused_with_the_known_ones() {
    let demo = Demo::start().await;
    let mut params = json!({});
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2031-01-01",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let response = reqwest::Client::new()
        .post(demo.url())
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2031-01-01")
        .header("mcp-method", "server/discover")
        .json(&json!({"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": params}))
        .send()
        .await
        .unwrap();
    let refused = client::answer(response).await;
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    assert!(
        refused["error"]["data"]["supported"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28"))
    );
}

#[tokio::test]
async fn listen_acknowledges_what_it_can_honour_and_tells_edits() {
    let demo = Demo::start().await;
    let params = json!({"notifications": {
        "resourcesListChanged": true, "toolsListChanged": true,
        "resourceSubscriptions": ["docs:///limits.json", "docs:///../escape", "https://elsewhere/"]}});
    let mut events = Events::of(post(&demo.url(), "subscriptions/listen", params).await);
    let acknowledged = events
        .until("acknowledgement", |_| true)
        .await
        .pop()
        .unwrap();
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"resourcesListChanged": true, "resourceSubscriptions": ["docs:///limits.json"]})
    );

    demo.write("team/on call.md", "not subscribed");
    demo.write("limits.json", r#"{"max_batch": 50}"#);
    let seen = events
        .until("update", |message| {
            is_update(message, "docs:///limits.json")
        })
        .await;
    assert_eq!(seen.len(), 1, "{seen:#?}");
    assert_eq!(
        seen[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        json!(7)
    );
}

#[tokio::test]
async fn a_deletion_is_told_and_then_not_found() {
    let demo = Demo::start().await;
    let mut events = listen(&demo.url(), &["docs:///limits.json"]).await;
    demo.delete("limits.json");
    let seen = events.until("list change", is_list_changed).await;
    assert!(
        seen.iter()
            .any(|message| is_update(message, "docs:///limits.json")),
        "{seen:#?}"
    );
    let read = call(
        &demo.url(),
        "resources/read",
        json!({"uri": "docs:///limits.json"}),
    )
    .await;
    assert_eq!(read["error"]["code"], -32602);
    assert_eq!(read["error"]["data"]["uri"], "docs:///limits.json");
}

#[tokio::test]
async fn shutdown_ends_listen_streams() {
    let demo = Demo::start().await;
    let mut events = listen(&demo.url(), &["docs:///limits.json"]).await;
    let Demo {
        running, shutdown, ..
    } = demo;
    drop(shutdown);
    tokio::time::timeout(LIMIT, async { while events.next().await.is_some() {} })
        .await
        .unwrap();
    tokio::time::timeout(LIMIT, running.handle)
        .await
        .unwrap()
        .unwrap();
}

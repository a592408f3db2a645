//! The servers written by others.

use fencepost_tests::real_servers::{
    Edition, Everything, LegacyClient, Memory, PythonModern, SdkExample, SdkServer,
    everything_stdio,
};
use serde_json::{Value, json};

async fn discover(url: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = reqwest::Client::new()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "server/discover")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}))
        .send()
        .await
        .unwrap();
    answer.json().await.unwrap()
}

#[tokio::test]
async fn memory_speaks_both_eras_changes_and_comes_back_on_its_port() {
    let mut memory = Memory::start().await;
    let discovered = discover(&memory.url()).await;
    assert_eq!(
        discovered["result"]["capabilities"]["resources"]["subscribe"], true,
        "{discovered}"
    );
    let client = LegacyClient::connect(&memory.url()).await;
    assert_eq!(
        client.initialized["result"]["capabilities"]["resources"]["subscribe"],
        true
    );
    let list = client.call("resources/list", json!({})).await;
    let uri = list["result"]["resources"][0]["uri"].clone();
    memory.create_entity("first").await;
    let read = client.call("resources/read", json!({"uri": uri})).await;
    assert!(
        read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("first"),
        "{read}"
    );

    let url = memory.url();
    memory.server.stop().await;
    memory.server.start_again().await;
    assert_eq!(memory.url(), url);
    let client = LegacyClient::connect(&url).await;
    let read = client.call("resources/read", json!({"uri": uri})).await;
    assert!(
        read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .contains("first"),
        "kept in a file: {read}"
    );
}

#[tokio::test]
async fn everything_starts_in_both_editions() {
    for edition in [Edition::December2025, Edition::August2026] {
        let everything = Everything::start(edition).await;
        let client = LegacyClient::connect(&everything.url()).await;
        assert_eq!(
            client.initialized["result"]["capabilities"]["resources"]["subscribe"], true,
            "{edition:?}"
        );
        let list = client.call("resources/list", json!({})).await;
        assert!(
            !list["result"]["resources"].as_array().unwrap().is_empty(),
            "{edition:?}: {list}"
        );
        let command = everything_stdio(edition);
        assert!(std::path::Path::new(&command[1]).exists(), "{command:?}");
    }
}

#[tokio::test]
async fn the_sdk_examples_start() {
    let growing = SdkServer::start(SdkExample::GrowingList).await;
    let client = LegacyClient::connect(&growing.url()).await;
    assert_eq!(
        client.initialized["result"]["capabilities"]["resources"]["listChanged"],
        true
    );
    assert!(
        client.initialized["result"]["capabilities"]["resources"]
            .get("subscribe")
            .is_none()
    );

    let stateless = SdkServer::start(SdkExample::Stateless).await;
    let refused = reqwest::get(stateless.url()).await.unwrap();
    assert_eq!(refused.status(), reqwest::StatusCode::METHOD_NOT_ALLOWED);
    let client = LegacyClient::connect(&stateless.url()).await;
    assert!(
        client.initialized["result"]["serverInfo"]["name"].is_string(),
        "{}",
        client.initialized
    );
}

#[tokio::test]
async fn the_python_sdk_is_modern_with_subscribe_and_legacy_without() {
    let mut python = PythonModern::start().await;
    let discovered = discover(&python.url()).await;
    assert_eq!(
        discovered["result"]["capabilities"]["resources"]["subscribe"], true,
        "{discovered}"
    );
    let client = LegacyClient::connect(&python.url()).await;
    assert_ne!(
        client.initialized["result"]["capabilities"]["resources"]["subscribe"],
        true
    );
    python.set("memo://notes/1", "changed").await;
    let read = client
        .call("resources/read", json!({"uri": "memo://notes/1"}))
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "changed");
    python.remove("memo://notes/1").await;
    let read = client
        .call("resources/read", json!({"uri": "memo://notes/1"}))
        .await;
    assert!(read.get("error").is_some(), "{read}");
    python.server.stop().await;
    python.server.start_again().await;
}

//! The faulty server does what its switches say, as seen by a client that knows nothing of them.

use std::time::Duration;

use fencepost_tests::{
    faulty::{Faults, FaultyServer, ListFault, ReadFault, SubscribeFault},
    real_servers::LegacyClient,
    wait,
};
use futures::StreamExt as _;
use http::HeaderMap;
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(5);

fn modern(server: &FaultyServer, method: &str, mut params: Value) -> reqwest::RequestBuilder {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = reqwest::Client::new()
        .post(server.url())
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    let request = match params["uri"].as_str() {
        Some(uri) => request.header("mcp-name", uri),
        None => request,
    };
    request.json(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
}

async fn until(
    stream: &mut (impl futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin),
    text: &str,
) -> String {
    let mut seen = String::new();
    let found = tokio::time::timeout(LIMIT, async {
        while let Some(Ok(bytes)) = stream.next().await {
            seen.push_str(&String::from_utf8_lossy(&bytes));
            if seen.contains(text) {
                return true;
            }
        }
        false
    })
    .await;
    assert_eq!(found, Ok(true), "{text:?} did not come; seen: {seen}");
    seen
}

/// A GET stream of a session of its own, subscribed to the URI.
async fn legacy_stream(
    server: &FaultyServer,
    uri: &str,
) -> (
    LegacyClient,
    impl futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Unpin,
) {
    let client = LegacyClient::connect(&server.url()).await;
    let subscribed = client
        .call("resources/subscribe", json!({"uri": uri}))
        .await;
    assert_eq!(subscribed["result"], json!({}));
    let session = server.requests().last().unwrap().session.clone().unwrap();
    let response = reqwest::Client::new()
        .get(server.url())
        .header("mcp-session-id", session)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    (client, response.bytes_stream())
}

#[tokio::test]
async fn legacy_subscribe_change_drop_and_forget() {
    let server = FaultyServer::start().await;
    server.set("test://a", "one");
    let (client, mut stream) = legacy_stream(&server, "test://a").await;
    assert_eq!(server.subscribers_of("test://a"), 1);
    assert_eq!(server.notify("test://other"), 0);
    assert_eq!(server.change("test://a", "two"), 1);
    until(&mut stream, r#""uri":"test://a""#).await;
    let read = client
        .call("resources/read", json!({"uri": "test://a"}))
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "two");
    assert_eq!(server.reads_of("test://a"), 1);

    assert_eq!(server.drop_streams(), 1);
    assert!(
        tokio::time::timeout(LIMIT, async { while stream.next().await.is_some() {} })
            .await
            .is_ok()
    );
    assert_eq!(
        (
            server.counters().sessions_live,
            server.counters().streams_live
        ),
        (1, 0)
    );
    assert_eq!(server.notify("test://a"), 0);

    assert_eq!(server.forget_sessions(), 1);
    let lost = client.call("resources/list", json!({})).await;
    assert_eq!(lost["error"]["message"], "Session not found");
}

#[tokio::test]
async fn modern_listen_acknowledges_part_and_ends_gracefully() {
    let server = FaultyServer::start_with(Faults {
        listen_accepts: Some(1),
        ..Faults::default()
    })
    .await;
    let filter = json!({"notifications": {"resourcesListChanged": true, "resourceSubscriptions": ["test://a", "test://b"]}});
    let mut stream = modern(&server, "subscriptions/listen", filter)
        .send()
        .await
        .unwrap()
        .bytes_stream();
    let acknowledged = until(&mut stream, "acknowledged").await;
    assert!(
        acknowledged.contains("test://a") && !acknowledged.contains("test://b"),
        "{acknowledged}"
    );
    assert_eq!(
        (
            server.notify("test://a"),
            server.notify("test://b"),
            server.list_changed()
        ),
        (1, 0, 1)
    );
    until(&mut stream, "list_changed").await;
    assert_eq!(server.end_listens(), 1);
    until(&mut stream, r#""resultType":"complete""#).await;
    assert!(stream.next().await.is_none());
    assert_eq!(server.counters().listens_live, 0);
}

#[tokio::test]
async fn a_held_read_answers_with_what_was_there_when_it_came() {
    let server = FaultyServer::start().await;
    server.set("test://a", "old");
    let hold = server.hold("test://a");
    let client = LegacyClient::connect(&server.url()).await;
    let first = client.call("resources/read", json!({"uri": "test://a"}));
    let rest = async {
        hold.caught(LIMIT).await;
        server.set("test://a", "new");
        let second = client
            .call("resources/read", json!({"uri": "test://a"}))
            .await;
        assert_eq!(second["result"]["contents"][0]["text"], "new");
        assert_eq!(server.counters().reads_in_flight, 1);
        hold.release();
    };
    let (first, ()) = tokio::join!(first, rest);
    assert_eq!(first["result"]["contents"][0]["text"], "old");
    assert_eq!(
        (
            server.counters().reads_in_flight,
            server.counters().reads_at_once
        ),
        (0, 2)
    );
}

#[tokio::test]
async fn reads_fail_as_told() {
    let server = FaultyServer::start().await;
    server.set("test://a", "one");
    let read = || modern(&server, "resources/read", json!({"uri": "test://a"})).send();
    let missing = modern(&server, "resources/read", json!({"uri": "test://nowhere"}))
        .send()
        .await
        .unwrap();
    assert_eq!(
        missing.json::<Value>().await.unwrap()["error"]["code"],
        -32602
    );
    for (fault, status) in [
        (ReadFault::Status(500), 500),
        (ReadFault::Unauthorized, 401),
        (ReadFault::Forbidden, 403),
        (
            ReadFault::TooManyRequests {
                retry_after: Some("120".to_owned()),
            },
            429,
        ),
        (ReadFault::Accepted, 202),
    ] {
        server.fail_read("test://a", Some(fault));
        assert_eq!(read().await.unwrap().status(), status);
    }
    server.fail_read("test://a", Some(ReadFault::ResultAndError));
    let both: Value = read().await.unwrap().json().await.unwrap();
    assert!(
        both.get("result").is_some() && both.get("error").is_some(),
        "{both}"
    );
    server.fail_read("test://a", Some(ReadFault::Cut));
    assert!(read().await.unwrap().bytes().await.is_err());
    server.fail_read("test://a", Some(ReadFault::NoAnswer));
    assert!(
        tokio::time::timeout(Duration::from_millis(300), read())
            .await
            .is_err()
    );
    wait::until_value(
        "the abandoned read ends",
        LIMIT,
        async || server.counters().reads_in_flight,
        |n| *n == 0,
    )
    .await;
    server.fail_read("test://a", None);
    assert_eq!(read().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_careless_modern_client_is_refused() {
    let server = FaultyServer::start().await;
    let headers = [("mcp-method", "resources/list")]
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let wrong = modern(&server, "resources/read", json!({"uri": "test://a"}))
        .headers(HeaderMap::from_iter(headers));
    let refused: Value = wrong.send().await.unwrap().json().await.unwrap();
    assert_eq!(refused["error"]["code"], -32020, "{refused}");
}

#[tokio::test]
async fn subscribe_and_list_fail_as_told() {
    let server = FaultyServer::start_with(Faults {
        subscribe: SubscribeFault::MethodNotFound,
        page_size: 2,
        list: ListFault::PageStatus {
            page: 2,
            status: 500,
        },
        ..Faults::default()
    })
    .await;
    server.set_many((0..5).map(|number| (format!("test://{number}"), "x")));
    let client = LegacyClient::connect(&server.url()).await;
    let refused = client
        .call("resources/subscribe", json!({"uri": "test://0"}))
        .await;
    assert_eq!(refused["error"]["code"], -32601);
    server.faults(|faults| faults.list = ListFault::None);
    let mut params = json!({});
    let mut seen = 0;
    loop {
        let page = client.call("resources/list", params).await;
        seen += page["result"]["resources"].as_array().unwrap().len();
        match page["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(seen, 5);
    server.faults(|faults| {
        faults.subscribe = SubscribeFault::None;
        faults.swallow_subscribe = Some(2);
    });
    let swallowed = client.call("resources/subscribe", json!({"uri": "test://0"}));
    assert!(
        tokio::time::timeout(Duration::from_millis(300), swallowed)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_token_is_asked_for_and_a_stopped_server_gives_its_port_back() {
    let server = FaultyServer::start_with(Faults {
        bearer: Some("first".to_owned()),
        ..Faults::default()
    })
    .await;
    let discover = |token: &'static str| {
        modern(&server, "server/discover", json!({}))
            .bearer_auth(token)
            .send()
    };
    assert_eq!(discover("wrong").await.unwrap().status(), 401);
    assert_eq!(discover("first").await.unwrap().status(), 200);
    let addr = server.addr();
    server.stop().await;
    let again = FaultyServer::start_on(addr, Faults::default()).await;
    assert_eq!(again.addr(), addr);
}

//! 2025-11-25: a session, its GET stream, subscribe and unsubscribe.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    Demo,
    client::{self, Events, LIMIT, is_list_changed, is_update},
};

struct Session {
    http: reqwest::Client,
    url: String,
    id: String,
}

impl Session {
    async fn open(url: String) -> (Self, Value) {
        let http = reqwest::Client::new();
        let response = http
            .post(&url)
            .header("accept", "application/json, text/event-stream")
            .json(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}))
            .send()
            .await
            .unwrap();
        let id = response.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let initialized = client::answer(response).await;
        let session = Self { http, url, id };
        let accepted = session
            .post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        assert_eq!(accepted.status(), StatusCode::ACCEPTED);
        (session, initialized)
    }

    fn with_headers(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        request
            .header("accept", "application/json, text/event-stream")
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", "2025-11-25")
    }

    async fn post(&self, body: &Value) -> reqwest::Response {
        self.with_headers(self.http.post(&self.url))
            .json(body)
            .send()
            .await
            .unwrap()
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        client::answer(self.post(&body).await).await
    }

    async fn events(&self) -> Events {
        let response = self
            .with_headers(self.http.get(&self.url))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events::of(response)
    }
}

#[tokio::test]
async fn lists_and_reads_text_and_blob() {
    let demo = Demo::start().await;
    let (session, initialized) = Session::open(demo.url()).await;
    let resources = &initialized["result"]["capabilities"]["resources"];
    assert_eq!(resources, &json!({"subscribe": true, "listChanged": true}));
    assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25");

    let list = session.call("resources/list", json!({})).await;
    let uris: Vec<_> = list["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["uri"])
        .collect();
    assert_eq!(
        uris,
        [
            "docs:///limits.json",
            "docs:///logo.bin",
            "docs:///team/on%20call.md"
        ]
    );
    assert_eq!(list["result"].get("nextCursor"), None);
    assert_eq!(list["result"].get("resultType"), None);

    let text = session
        .call(
            "resources/read",
            json!({"uri": "docs:///team/on%20call.md"}),
        )
        .await;
    assert_eq!(
        text["result"]["contents"],
        json!([{"uri": "docs:///team/on%20call.md", "mimeType": "text/markdown", "text": "# On call\n"}])
    );
    let blob = session
        .call("resources/read", json!({"uri": "docs:///logo.bin"}))
        .await;
    assert_eq!(
        blob["result"]["contents"],
        json!([{"uri": "docs:///logo.bin", "mimeType": "application/octet-stream", "blob": "//4A"}])
    );
    let templates = session.call("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"], json!([]));
}

#[tokio::test]
async fn pages_hold_a_hundred_and_cover_everything_once() {
    let demo = Demo::start().await;
    for number in 0..250 {
        demo.write(&format!("many/{number:03}.txt"), "x");
    }
    let (session, _) = Session::open(demo.url()).await;
    let mut uris: Vec<String> = Vec::new();
    let mut params = json!({});
    let mut sizes = Vec::new();
    loop {
        let page = session.call("resources/list", params).await;
        let items = page["result"]["resources"].as_array().unwrap();
        sizes.push(items.len());
        uris.extend(
            items
                .iter()
                .map(|item| item["uri"].as_str().unwrap().to_owned()),
        );
        match page["result"].get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(sizes, [100, 100, 53]);
    assert!(uris.is_sorted_by(|left, right| left < right));

    let refused = session
        .call("resources/list", json!({"cursor": "not-one-of-ours"}))
        .await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test]
async fn an_edit_is_told_to_who_subscribed_and_to_nobody_else() {
    let demo = Demo::start().await;
    let (session, _) = Session::open(demo.url()).await;
    let (bystander, _) = Session::open(demo.url()).await;
    let mut events = session.events().await;
    let mut bystander_events = bystander.events().await;
    let subscribed = session
        .call("resources/subscribe", json!({"uri": "docs:///limits.json"}))
        .await;
    assert_eq!(subscribed["result"], json!({}));

    demo.write("team/on call.md", "not subscribed");
    demo.write("limits.json", r#"{"max_batch": 50}"#);
    let seen = events
        .until("update", |message| {
            is_update(message, "docs:///limits.json")
        })
        .await;
    assert_eq!(seen.len(), 1, "{seen:#?}");
    let read = session
        .call("resources/read", json!({"uri": "docs:///limits.json"}))
        .await;
    assert_eq!(
        read["result"]["contents"][0]["text"],
        r#"{"max_batch": 50}"#
    );

    demo.replace("limits.json", r#"{"max_batch": 51}"#);
    events
        .until("update after a rename", |message| {
            is_update(message, "docs:///limits.json")
        })
        .await;

    session
        .call(
            "resources/unsubscribe",
            json!({"uri": "docs:///limits.json"}),
        )
        .await;
    demo.write("limits.json", "{}");
    demo.write("new.txt", "x");
    let seen = events.until("list change", is_list_changed).await;
    assert!(
        !seen
            .iter()
            .any(|message| is_update(message, "docs:///limits.json")),
        "{seen:#?}"
    );
    let seen = bystander_events.until("list change", is_list_changed).await;
    assert!(seen.iter().all(is_list_changed), "{seen:#?}");
}

#[tokio::test]
async fn a_deletion_is_told_and_then_not_found() {
    let demo = Demo::start().await;
    let (session, _) = Session::open(demo.url()).await;
    let mut events = session.events().await;
    session
        .call("resources/subscribe", json!({"uri": "docs:///limits.json"}))
        .await;
    demo.delete("limits.json");
    let seen = events.until("list change", is_list_changed).await;
    assert!(
        seen.iter()
            .any(|message| is_update(message, "docs:///limits.json")),
        "{seen:#?}"
    );
    let read = session
        .call("resources/read", json!({"uri": "docs:///limits.json"}))
        .await;
    assert_eq!(read["error"]["code"], -32002);

    demo.write("limits.json", "back");
    events
        .until("update", |message| {
            is_update(message, "docs:///limits.json")
        })
        .await;
}

#[tokio::test]
async fn a_burst_of_writes_is_one_notification() {
    let demo = Demo::start().await;
    let (session, _) = Session::open(demo.url()).await;
    let mut events = session.events().await;
    session
        .call("resources/subscribe", json!({"uri": "docs:///limits.json"}))
        .await;
    for number in 0..20 {
        demo.write("limits.json", &format!("{{\"max_batch\": {number}}}"));
    }
    events
        .until("update", |message| {
            is_update(message, "docs:///limits.json")
        })
        .await;
    demo.write("end.txt", "x");
    let rest = events.until("list change", is_list_changed).await;
    assert!(rest.len() <= 2, "{rest:#?}");
}

#[tokio::test]
async fn nothing_outside_the_folder_is_served() {
    let demo = Demo::start().await;
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.txt");
    std::fs::write(&secret, "secret").unwrap();
    std::os::unix::fs::symlink(&secret, demo.root.path().join("link.txt")).unwrap();
    std::os::unix::fs::symlink(outside.path(), demo.root.path().join("folder")).unwrap();
    std::os::unix::fs::symlink(
        demo.root.path().join("limits.json"),
        demo.root.path().join("inside.json"),
    )
    .unwrap();
    let (session, _) = Session::open(demo.url()).await;
    for uri in [
        "docs:///link.txt".to_owned(),
        "docs:///folder/secret.txt".to_owned(),
        format!("docs:///{}", secret.display()),
        "docs:///../secret.txt".to_owned(),
        "docs:///%2e%2e/secret.txt".to_owned(),
        "docs:///team".to_owned(),
        format!("file://{}", secret.display()),
    ] {
        let read = session.call("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["error"]["code"], -32002, "{uri}: {read}");
    }
    let list = session.call("resources/list", json!({})).await;
    let text = list.to_string();
    assert!(
        text.contains("docs:///inside.json")
            && !text.contains("link.txt")
            && !text.contains("secret"),
        "{text}"
    );
}

#[tokio::test]
async fn a_forgotten_session_is_404_and_a_closed_one_is_gone() {
    let demo = Demo::start().await;
    let (mut session, _) = Session::open(demo.url()).await;
    let deleted = session
        .with_headers(session.http.delete(&session.url))
        .send()
        .await
        .unwrap();
    assert!(deleted.status().is_success(), "{}", deleted.status());
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list"});
    assert_eq!(session.post(&list).await.status(), StatusCode::NOT_FOUND);
    session.id = "unheard-of".to_owned();
    assert_eq!(session.post(&list).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn shutdown_ends_open_streams() {
    let demo = Demo::start().await;
    let (session, _) = Session::open(demo.url()).await;
    let mut events = session.events().await;
    let Demo {
        running, shutdown, ..
    } = demo;
    drop(shutdown);
    assert_eq!(
        tokio::time::timeout(LIMIT, events.next()).await.unwrap(),
        None
    );
    tokio::time::timeout(LIMIT, running.handle)
        .await
        .unwrap()
        .unwrap();
}

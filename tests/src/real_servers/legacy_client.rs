//! A bare legacy client, to do to a server what any other client would: call a tool, look at its answers.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};

const VERSION: &str = "2025-11-25";

/// No answer of these servers takes longer than this.
const LIMIT: Duration = Duration::from_secs(15);

pub struct LegacyClient {
    http: reqwest::Client,
    url: String,
    session: Option<String>,
    /// The server's answer to `initialize`.
    pub initialized: Value,
}

impl LegacyClient {
    pub async fn connect(url: &str) -> Self {
        let http = reqwest::Client::builder()
            .timeout(LIMIT)
            .no_proxy()
            .build()
            .expect("an HTTP client");
        let mut client = Self {
            http,
            url: url.to_owned(),
            session: None,
            initialized: Value::Null,
        };
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let response = client
            .send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        let session = response
            .headers()
            .get("mcp-session-id")
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        client.initialized = answer(response).await;
        client.session = session;
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    pub async fn call(&self, method: &str, params: Value) -> Value {
        answer(
            self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
                .await,
        )
        .await
    }

    pub async fn close(self) {
        if let Some(session) = self.session {
            let closed = self
                .http
                .delete(&self.url)
                .header("mcp-session-id", session)
                .send();
            // A server without DELETE forgets the session in its own time.
            drop(closed.await);
        }
    }

    async fn send(&self, body: &Value) -> reqwest::Response {
        let mut request = self
            .http
            .post(&self.url)
            .header(ACCEPT, "application/json, text/event-stream")
            .json(body);
        if let Some(session) = &self.session {
            request = request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", VERSION);
        }
        request
            .send()
            .await
            .unwrap_or_else(|error| panic!("{} does not answer: {error}", self.url))
    }
}

async fn answer(mut response: reqwest::Response) -> Value {
    let status = response.status();
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str()
            .unwrap_or_default()
            .starts_with("text/event-stream")
    });
    if !is_stream {
        let text = response.text().await.expect("a body");
        return serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("{status}, not JSON: {text}"));
    }
    // The stream may stay open after the answer, and bear notifications before it.
    let mut text = String::new();
    while let Some(bytes) = response.chunk().await.expect("a stream") {
        text.push_str(&String::from_utf8_lossy(&bytes));
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let answers = whole
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
        if let Some(answer) = answers
            .into_iter()
            .find(|message| message.get("id").is_some() && message.get("method").is_none())
        {
            return answer;
        }
    }
    panic!("the stream ended without an answer: {text}")
}

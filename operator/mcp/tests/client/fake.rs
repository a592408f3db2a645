//! A scriptable MCP server over HTTP: a script says what each request gets; everything seen is kept.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use fencepost_mcp::{
    Anonymous, ClientLimits, ConnectConfig, ConnectError, EgressPolicy, Events, Protocol, Session,
    SessionEvent, Transport, connect,
};
use futures::stream;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use url::Url;

pub const MODERN: &str = "2026-07-28";
pub const TOKEN: &str = "Bearer t0ken";

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub verb: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Seen {
    /// The JSON-RPC method, or the HTTP verb where there is none.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn uri(&self) -> &str {
        self.body["params"]["uri"].as_str().unwrap_or_default()
    }

    pub fn result(&self, result: &Value) -> Reply {
        Reply::json(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    pub fn error(&self, code: i64, message: &str) -> Reply {
        Reply::json(
            &json!({"jsonrpc": "2.0", "id": self.body["id"], "error": {"code": code, "message": message}}),
        )
    }

    /// The answer as one SSE frame.
    pub fn frame(&self, result: &Value) -> String {
        frame(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }
}

pub fn frame(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

pub fn updated(uri: &str) -> String {
    frame(
        &json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}),
    )
}

pub fn text(uri: &str, text: &str) -> Value {
    json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]})
}

/// What a request gets.
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: ReplyBody,
    delay: Duration,
}

enum ReplyBody {
    Whole(Vec<u8>),
    /// Ends when the sender is dropped.
    Pieces(mpsc::Receiver<Bytes>),
    Never,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: ReplyBody::Whole(Vec::new()),
            delay: Duration::ZERO,
        }
    }

    pub fn never() -> Self {
        Self {
            body: ReplyBody::Never,
            ..Self::status(200)
        }
    }

    pub fn json(value: &Value) -> Self {
        Self::status(200)
            .typed("application/json")
            .body(value.to_string())
    }

    /// A stream with all of its content at once, which then ends.
    pub fn sse(content: impl Into<Vec<u8>>) -> Self {
        Self::status(200).typed("text/event-stream").body(content)
    }

    /// A stream that stays open as long as its sender.
    pub fn open_stream() -> (mpsc::Sender<Bytes>, Self) {
        let (pieces, receiver) = mpsc::channel(4096);
        let reply = Self {
            body: ReplyBody::Pieces(receiver),
            ..Self::status(200).typed("text/event-stream")
        };
        (pieces, reply)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn typed(self, media: &str) -> Self {
        self.with("content-type", media)
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = ReplyBody::Whole(body.into());
        self
    }

    pub fn code(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    async fn send(self) -> Response {
        tokio::time::sleep(self.delay).await;
        let body = match self.body {
            ReplyBody::Never => std::future::pending().await,
            ReplyBody::Whole(bytes) => Body::from(bytes),
            ReplyBody::Pieces(pieces) => {
                Body::from_stream(stream::unfold(pieces, |mut pieces| async {
                    pieces
                        .recv()
                        .await
                        .map(|piece| (Ok::<_, Infallible>(piece), pieces))
                }))
            }
        };
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(body).unwrap()
    }
}

pub struct Fake {
    pub url: Url,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let script = Arc::new(script);
        let record = Arc::clone(&seen);
        let app = Router::new().fallback(move |request: Request| {
            let (script, record) = (Arc::clone(&script), Arc::clone(&record));
            async move {
                let (parts, body) = request.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                let seen = Seen {
                    verb: parts.method.to_string(),
                    path: parts.uri.path().to_owned(),
                    headers: parts.headers,
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                };
                record.lock().unwrap().push(seen.clone());
                let reply = script(&seen);
                reply.send().await
            }
        });
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            url: url.parse().unwrap(),
            seen,
            task,
        }
    }

    /// A legacy server with a session, without a GET stream; `over` may answer differently.
    pub async fn legacy(over: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self::start(move |seen| over(seen).unwrap_or_else(|| legacy_default(seen))).await
    }

    /// A modern server that acknowledges every listen request and keeps it open; `over` may answer differently.
    pub async fn modern(over: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let held = Mutex::new(Vec::new());
        Self::start(move |seen| {
            over(seen).unwrap_or_else(|| {
                if seen.method() == "subscriptions/listen" {
                    let (pieces, reply) = acknowledged(seen, &seen.body["params"]["notifications"]);
                    held.lock().unwrap().push(pieces);
                    return reply;
                }
                modern_default(seen)
            })
        })
        .await
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn of(&self, method: &str) -> Vec<Seen> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.method() == method)
            .collect()
    }

    pub fn count(&self, method: &str) -> usize {
        self.of(method).len()
    }

    pub async fn connect(&self) -> (Session, Events) {
        self.try_connect(Protocol::Auto).await.unwrap()
    }

    pub async fn try_connect(&self, protocol: Protocol) -> Result<(Session, Events), ConnectError> {
        connect(ConnectConfig {
            protocol,
            ..config(self.url.clone())
        })
        .await
    }
}

/// Short limits, so that what must end by a deadline does so within a test.
pub fn limits() -> ClientLimits {
    ClientLimits {
        request_timeout: Duration::from_secs(2),
        connect_timeout: Duration::from_millis(500),
        probe_timeout: Duration::from_millis(800),
        max_content_bytes: 64 * 1024,
        max_message_bytes: 128 * 1024,
        stream_backoff: (Duration::from_millis(10), Duration::from_millis(50)),
        ..ClientLimits::default()
    }
}

pub fn config(url: Url) -> ConnectConfig {
    ConnectConfig {
        transport: Transport::Http { url, ca_pem: None },
        protocol: Protocol::Auto,
        remembered_era: None,
        credentials: Arc::new(Anonymous),
        egress: EgressPolicy {
            allow_loopback: true,
            proxy: None,
        },
        limits: limits(),
        allow_stdio: true,
    }
}

pub fn legacy_default(seen: &Seen) -> Reply {
    match seen.method() {
        "server/discover" => Reply::status(400).typed("text/plain").body("what?"),
        "initialize" => seen
            .result(&json!({
                "protocolVersion": seen.body["params"]["protocolVersion"],
                "capabilities": {"resources": {"subscribe": true, "listChanged": true}},
                "serverInfo": {"name": "fake", "version": "1.2"}}))
            .with("mcp-session-id", "s3cret-session"),
        method
            if method.starts_with("notifications/")
                || seen.body["method"].is_null() && seen.verb == "POST" =>
        {
            Reply::status(202)
        }
        "GET" => Reply::status(405),
        "DELETE" => Reply::status(200),
        "resources/subscribe" | "resources/unsubscribe" => seen.result(&json!({})),
        "resources/read" => seen.result(&text(seen.uri(), "content")),
        _ => seen.error(-32601, "Method not found"),
    }
}

pub fn modern_default(seen: &Seen) -> Reply {
    match seen.method() {
        "server/discover" => seen.result(&json!({
            "resultType": "complete",
            "supportedVersions": [MODERN, "2025-11-25"],
            "capabilities": {"resources": {"subscribe": true}, "extensions": {"dev.fencepost/resource-snapshot": {}}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "2.0"}}})),
        "resources/read" => seen.result(&text(seen.uri(), "content")),
        _ => seen.error(-32601, "Method not found").code(404),
    }
}

/// An open listen stream whose first message honours `filter`.
pub fn acknowledged(seen: &Seen, filter: &Value) -> (mpsc::Sender<Bytes>, Reply) {
    let (pieces, reply) = Reply::open_stream();
    let first = frame(
        &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
        "notifications": filter,
        "_meta": {"io.modelcontextprotocol/subscriptionId": seen.body["id"]}}}),
    );
    pieces.try_send(first.into()).unwrap();
    (pieces, reply)
}

/// The next event that is not about a stream's opening or failing, nor ignored.
pub async fn next_telling(events: &mut Events) -> Option<SessionEvent> {
    loop {
        match next(events).await {
            Some(
                SessionEvent::Ignored { .. }
                | SessionEvent::StreamOpened
                | SessionEvent::StreamFailed { .. },
            ) => {}
            other => return other,
        }
    }
}

/// The next event; none within five seconds is a failure of the test.
pub async fn next(events: &mut Events) -> Option<SessionEvent> {
    tokio::time::timeout(Duration::from_secs(5), events.next())
        .await
        .expect("no event came")
}

/// Waits until `condition` holds.
pub async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), wait)
        .await
        .expect("it never came to be");
}

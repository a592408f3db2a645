//! A derived index that takes webhooks: checks each signature, keeps what it got, and fails when told to.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::{net::TcpListener, task::JoinHandle};
use uuid::Uuid;

use crate::wait;

/// How the receiver answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// 204.
    Accept,
    Status(u16),
    /// Takes the event, answers 204 after this long: the sender's deadline passes, the work was done.
    Late(Duration),
    /// Never answers.
    Hang,
}

/// One request that came.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub at: Instant,
    /// `webhook-id`.
    pub id: String,
    /// `webhook-timestamp`.
    pub timestamp: i64,
    /// Whether the signature holds for id, timestamp and body, by a key of this receiver.
    pub signed: bool,
    /// What the check of the signature said, when it does not hold.
    pub fault: Option<String>,
    pub body: Bytes,
    /// The body as JSON, `Null` when it is none.
    pub event: Value,
    pub answer: Answer,
}

impl Delivery {
    /// The event's type, such as `dev.fencepost.resource.accepted`.
    pub fn kind(&self) -> &str {
        self.event["type"].as_str().unwrap_or_default()
    }

    /// The URI the event is about.
    pub fn subject(&self) -> &str {
        self.event["subject"].as_str().unwrap_or_default()
    }

    pub fn position(&self) -> i64 {
        self.event["data"]["position"].as_i64().unwrap_or_default()
    }
}

pub struct Receiver {
    state: Arc<Mutex<Table>>,
    addr: SocketAddr,
    secret: String,
    serving: JoinHandle<()>,
}

struct Table {
    keys: Vec<String>,
    answer: Answer,
    /// Answers for the next requests, before `answer` holds again.
    next: std::collections::VecDeque<Answer>,
    deliveries: Vec<Delivery>,
}

impl Receiver {
    /// A receiver on a free loopback port that accepts all, with a signing secret of its own.
    pub async fn start() -> Self {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    pub async fn start_on(addr: SocketAddr) -> Self {
        let secret = new_secret();
        let table = Table {
            keys: vec![secret.clone()],
            answer: Answer::Accept,
            next: std::collections::VecDeque::new(),
            deliveries: Vec::new(),
        };
        let state = Arc::new(Mutex::new(table));
        let listener = TcpListener::bind(addr)
            .await
            .expect("the receiver's address is free");
        let addr = listener
            .local_addr()
            .expect("a bound listener has an address");
        let router = Router::new()
            .route("/hook", post(take))
            .with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move {
            drop(axum::serve(listener, router).await);
        });
        Self {
            state,
            addr,
            secret,
            serving,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.addr)
    }

    /// The signing secret, as it stands in a manifest's Secret (`whsec_...`).
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Accepts signatures by another key too, as during a rotation. Returns the new secret.
    pub fn add_key(&self) -> String {
        let secret = new_secret();
        self.table().keys.push(secret.clone());
        secret
    }

    /// How all requests are answered from now on.
    pub fn answer(&self, answer: Answer) {
        self.table().answer = answer;
    }

    /// How the next requests are answered, one each; after them it is as before.
    pub fn answer_next(&self, answers: impl IntoIterator<Item = Answer>) {
        self.table().next.extend(answers);
    }

    /// All requests so far, refused ones included, oldest first.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.table().deliveries.clone()
    }

    /// Those that were accepted.
    pub fn accepted(&self) -> Vec<Delivery> {
        let mut deliveries = self.deliveries();
        deliveries.retain(|delivery| delivery.answer == Answer::Accept);
        deliveries
    }

    pub fn clear(&self) {
        self.table().deliveries.clear();
    }

    /// Waits for an accepted event that `wanted` passes.
    ///
    /// # Panics
    ///
    /// When the limit passes, with what came instead.
    pub async fn event(
        &self,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Delivery) -> bool,
    ) -> Delivery {
        wait::until(&format!("receiver: {what}"), limit, async || {
            let accepted = self.accepted();
            match accepted.iter().find(|delivery| wanted(delivery)) {
                Some(found) => Ok(found.clone()),
                None => Err(accepted
                    .into_iter()
                    .map(|delivery| delivery.event)
                    .collect::<Vec<_>>()),
            }
        })
        .await
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.state)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn lock(state: &Mutex<Table>) -> MutexGuard<'_, Table> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_secret() -> String {
    let bytes = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
    format!("whsec_{}", STANDARD.encode(bytes))
}

async fn take(
    State(state): State<Arc<Mutex<Table>>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let answer = {
        let mut table = lock(&state);
        let answer = table.next.pop_front().unwrap_or(table.answer);
        let checks = table.keys.iter().map(|key| {
            Webhook::new(key)
                .and_then(|webhook| webhook.verify(&body, &headers))
                .map_err(|error| error.to_string())
        });
        let faults: Vec<String> = checks.filter_map(Result::err).collect();
        let signed = faults.len() < table.keys.len();
        table.deliveries.push(Delivery {
            at: Instant::now(),
            id: text("webhook-id"),
            timestamp: text("webhook-timestamp").parse().unwrap_or_default(),
            signed,
            fault: if signed {
                None
            } else {
                faults.into_iter().next()
            },
            event: serde_json::from_slice(&body).unwrap_or(Value::Null),
            body,
            answer,
        });
        answer
    };
    match answer {
        Answer::Accept => StatusCode::NO_CONTENT,
        Answer::Status(status) => {
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        }
        Answer::Late(delay) => {
            tokio::time::sleep(delay).await;
            StatusCode::NO_CONTENT
        }
        Answer::Hang => std::future::pending().await,
    }
}

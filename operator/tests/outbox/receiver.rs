//! Receivers in this process: what they got, and how they behave.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, response::IntoResponse,
};
use fencepost_views::OutboxEvent;
use standardwebhooks::Webhook;
use tokio::net::TcpListener;

pub const KEY: &[u8] = b"a key of at least twenty-four bytes";

/// One request.
#[derive(Debug, Clone)]
pub struct Got {
    pub id: String,
    pub signature: String,
    pub timestamp: String,
    pub content_type: String,
    pub body: Vec<u8>,
    pub event: OutboxEvent,
    pub verified: bool,
}

/// What a request is answered with, by what came before it.
type Answer = Arc<dyn Fn(&OutboxEvent, usize) -> (StatusCode, Duration) + Send + Sync>;

#[derive(Clone)]
pub struct Receiver {
    got: Arc<Mutex<Vec<Got>>>,
    answer: Answer,
    pub url: String,
}

impl Receiver {
    /// `answer` is given the event and how many requests for its resource came before.
    pub async fn start(
        answer: impl Fn(&OutboxEvent, usize) -> (StatusCode, Duration) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self {
            got: Arc::default(),
            answer: Arc::new(answer),
            url,
        };
        let router = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    pub async fn willing() -> Self {
        Self::start(|_, _| (StatusCode::NO_CONTENT, Duration::ZERO)).await
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// Waits until `wanted` holds of all that was got.
    pub async fn until(&self, wanted: impl Fn(&[Got]) -> bool) -> Vec<Got> {
        for _ in 0..1500 {
            let got = self.got();
            if wanted(&got) {
                return got;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not within 15 s; got {:#?}", self.got());
    }
}

async fn receive(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let event: OutboxEvent = serde_json::from_slice(&body).unwrap();
    let got = Got {
        id: header("webhook-id"),
        signature: header("webhook-signature"),
        timestamp: header("webhook-timestamp"),
        content_type: header("content-type"),
        verified: Webhook::from_bytes(KEY.to_vec())
            .unwrap()
            .verify(&body, &headers)
            .is_ok(),
        body: body.to_vec(),
        event: event.clone(),
    };
    let before = {
        let mut all = receiver.got.lock().unwrap();
        let before = all
            .iter()
            .filter(|earlier| earlier.event.subject == event.subject)
            .count();
        all.push(got);
        before
    };
    let (status, after) = (receiver.answer)(&event, before);
    tokio::time::sleep(after).await;
    (status, "what the receiver says\n")
}

//! A small receiver of outbox events: shows what an index is told, and how a receiver should behave.
//!
//! In come signed webhooks; out goes one line an event. It believes nothing that is not signed with
//! one of its keys, applies only what is newer by `(epoch, generation, ordinal)`, and confirms the
//! rest as well: it has been told.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::Write,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router, body::Bytes, extract::DefaultBodyLimit, extract::State, http::HeaderMap,
    response::IntoResponse,
};
use fencepost_views::{Change, OutboxEvent};
use http::StatusCode;
use standardwebhooks::Webhook;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::manifest::Secret;

/// An event with its content (1 MiB at most, which JSON may write six times as long) and its note.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Resources whose newest version is remembered. An example has a handful.
const MAX_RESOURCES: usize = 100_000;
/// Changes shown on the line of an event.
const SHOWN_CHANGES: usize = 2;
/// Characters of one value, or of a URI, on it.
const SHOWN_CHARS: usize = 80;

/// Why the receiver did not start.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    #[error(
        "cannot listen on {address} for events; end what listens there, or choose another address"
    )]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the signing secret cannot be used; give whsec_ and base64, as the index's Secret has it"
    )]
    Secret(#[source] standardwebhooks::WebhookError),
    #[error("a receiver needs a signing secret; without one it would believe anybody")]
    NoSecret,
}

/// A receiver that listens.
#[derive(Debug)]
pub struct Running {
    pub addr: SocketAddr,
    /// Ends once the shutdown token is cancelled.
    pub handle: JoinHandle<()>,
}

struct Receiver {
    keys: Vec<Webhook>,
    print: bool,
    newest: Mutex<HashMap<Resource, Newness>>,
}

/// Namespace, server, subject, URI.
type Resource = (String, String, String, String);
/// Epoch, generation, ordinal.
type Newness = (i64, i64, i64);

/// Receives on any path until `shutdown`. Port 0 takes a free one. The keys are decoded; any of them may sign.
pub async fn serve(
    listen: SocketAddr,
    keys: Vec<Secret>,
    print: bool,
    shutdown: CancellationToken,
) -> Result<Running, ReceiverError> {
    if keys.is_empty() {
        return Err(ReceiverError::NoSecret);
    }
    let keys = keys
        .iter()
        .map(|key| Webhook::from_bytes(key.expose().to_vec()))
        .collect::<Result<_, _>>()
        .map_err(ReceiverError::Secret)?;
    let broken = |source| ReceiverError::Listen {
        address: listen,
        source,
    };
    let listener = TcpListener::bind(listen).await.map_err(broken)?;
    let addr = listener.local_addr().map_err(broken)?;
    let receiver = Arc::new(Receiver {
        keys,
        print,
        newest: Mutex::new(HashMap::new()),
    });
    let router = Router::new()
        .fallback(receive)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(receiver);
    let handle = tokio::spawn(async move {
        // No graceful drain: a sender's idle connection would hold the end up, and it tries again anyway.
        let served = shutdown
            .run_until_cancelled(async { axum::serve(listener, router).await })
            .await;
        if let Some(Err(error)) = served {
            tracing::warn!(%error, "the receiver ended");
        }
    });
    Ok(Running { addr, handle })
}

async fn receive(
    State(receiver): State<Arc<Receiver>>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    if !receiver
        .keys
        .iter()
        .any(|key| key.verify(&body, &headers).is_ok())
    {
        return (StatusCode::UNAUTHORIZED, "the signature does not fit\n");
    }
    let Ok(event) = serde_json::from_slice::<OutboxEvent>(&body) else {
        return (StatusCode::BAD_REQUEST, "this is no outbox event\n");
    };
    let applied = receiver.apply(&event);
    if receiver.print {
        let mut out = std::io::stdout().lock();
        // A closed pipe must not end the process.
        let _ = writeln!(out, "{}", line(&event, applied));
        let _ = out.flush();
    }
    (StatusCode::NO_CONTENT, "")
}

impl Receiver {
    /// Whether the event is newer than what was applied for its resource.
    fn apply(&self, event: &OutboxEvent) -> bool {
        let data = &event.data;
        let resource = (
            data.namespace.clone(),
            data.server.clone(),
            data.subject.clone(),
            data.uri.clone(),
        );
        let newness = (data.epoch, data.generation, data.ordinal);
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match newest.get_mut(&resource) {
            Some(known) if *known >= newness => false,
            Some(known) => {
                *known = newness;
                true
            }
            None => {
                if newest.len() < MAX_RESOURCES {
                    newest.insert(resource, newness);
                }
                true
            }
        }
    }
}

/// `12:04:05 accepted config://service/limits #11 sha256:ab12cd34 /max_batch: 500 -> 50`
fn line(event: &OutboxEvent, applied: bool) -> String {
    let data = &event.data;
    let kind = event.kind.rsplit('.').next().unwrap_or_default();
    let digest = data
        .digest
        .as_deref()
        .map_or("-", |digest| digest.get(..15).unwrap_or(digest));
    let mut line = format!(
        "{} {kind} {} #{} {digest}",
        event.time.format("%H:%M:%S"),
        data.uri,
        data.ordinal
    );
    if let Some(note) = &data.supersede {
        let shown: Vec<String> = note
            .changes
            .iter()
            .take(SHOWN_CHANGES)
            .map(change)
            .collect();
        line.push(' ');
        line.push_str(&shown.join(", "));
        if note.changes.len() > SHOWN_CHANGES {
            // Writing to a string cannot fail.
            let _ = write!(line, " and {} more", note.changes.len() - SHOWN_CHANGES);
        }
    }
    if !applied {
        line.push_str(" (not newer: left aside)");
    }
    // What a server wrote must not steer the terminal.
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn change(change: &Change) -> String {
    let shown = |value: &Option<serde_json::Value>| {
        value
            .as_ref()
            .map_or_else(|| "nothing".to_owned(), |value| clipped(&value.to_string()))
    };
    format!(
        "{}: {} -> {}",
        clipped(&change.path),
        shown(&change.old),
        shown(&change.new)
    )
}

fn clipped(text: &str) -> String {
    if text.chars().count() <= SHOWN_CHARS {
        return text.to_owned();
    }
    text.chars().take(SHOWN_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use fencepost_views::{EventData, Supersede};

    use super::*;

    fn event(epoch: i64, generation: i64, ordinal: i64) -> OutboxEvent {
        OutboxEvent {
            specversion: "1.0".into(),
            id: "0199".into(),
            source: "/agents/config".into(),
            kind: "dev.fencepost.resource.accepted".into(),
            subject: "config://limits".into(),
            time: "2026-01-01T12:04:05Z".parse().unwrap(),
            datacontenttype: "application/json".into(),
            data: EventData {
                position: 1,
                epoch,
                server: "config".into(),
                namespace: "agents".into(),
                subject: "anonymous".into(),
                uri: "config://limits\u{1b}[2J".into(),
                generation,
                ordinal,
                digest: Some(format!("sha256:{}", "ab".repeat(32))),
                previous_digest: None,
                mime_type: None,
                content: None,
                supersede: Some(Supersede {
                    text: "changed".into(),
                    changes: vec![Change {
                        path: "/max_batch".into(),
                        old: Some(500.into()),
                        new: Some(50.into()),
                    }],
                }),
                basis: None,
            },
        }
    }

    #[test]
    fn only_what_is_newer_is_applied() {
        let receiver = Receiver {
            keys: Vec::new(),
            print: false,
            newest: Mutex::default(),
        };
        assert!(receiver.apply(&event(1, 1, 5)));
        assert!(!receiver.apply(&event(1, 1, 5)), "a repeated event");
        assert!(!receiver.apply(&event(1, 1, 4)), "a late event");
        assert!(receiver.apply(&event(1, 2, 6)));
        assert!(receiver.apply(&event(2, 2, 7)));
        assert!(!receiver.apply(&event(1, 9, 9)), "of an epoch that is over");
    }

    #[test]
    fn an_event_is_one_calm_line() {
        assert_eq!(
            line(&event(1, 1, 11), true),
            "12:04:05 accepted config://limits [2J #11 sha256:abababab /max_batch: 500 -> 50"
        );
        assert!(line(&event(1, 1, 11), false).ends_with("(not newer: left aside)"));
    }
}

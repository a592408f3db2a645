//! Modern watching: one `subscriptions/listen` request that names every URI, replaced by a new one when the set changes.
//!
//! The new request is acknowledged before the old one ends, so no update falls between them. When the current one ends
//! by itself, gracefully or not, the session is over: its subscriptions ended with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::SubscriptionFilter;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::Era;
use crate::error::RequestError;
use crate::event::{EndReason, GapReason, SessionEvent};
use crate::fault::{Failure, settle};
use crate::link::{ListenFeed, ListenSignal, ListenStop};
use crate::message::{AnswerId, Call, Incoming};
use crate::session::Shared;

pub(crate) const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A message on a listen stream: about the stream itself, or anything else.
pub(crate) enum Heard {
    Signal(ListenSignal),
    Other(Incoming),
}

/// Sorts a message on the stream of listen request `id`. Messages that bear another subscription's id pass like any
/// other: they are signals without data, and the engine knows what it watches.
pub(crate) fn hear(call: &Call<'_>, id: u64, message: Incoming) -> Heard {
    match message {
        Incoming::Notification { method, params } if method == ACKNOWLEDGED => {
            Heard::Signal(ListenSignal::Acknowledged(honoured(&params)))
        }
        Incoming::Answer {
            id: theirs,
            outcome,
        } if theirs.answers(id) => Heard::Signal(match settle(call, false, outcome) {
            Ok(_) => ListenSignal::Completed,
            Err(failure) => ListenSignal::Refused(failure),
        }),
        other => Heard::Other(other),
    }
}

/// The listen request that a message of a shared stream (stdio) belongs to, if it is about one.
pub(crate) fn acknowledged_request(method: &str, params: &Value) -> Option<AnswerId> {
    (method == ACKNOWLEDGED).then(|| {
        AnswerId::read(
            params
                .get("_meta")
                .and_then(|meta| meta.get("io.modelcontextprotocol/subscriptionId")),
        )
    })
}

fn honoured(params: &Value) -> Vec<String> {
    let list = params
        .get("notifications")
        .and_then(|filter| filter.get("resourceSubscriptions"));
    let uris = list.and_then(Value::as_array).into_iter().flatten();
    uris.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The listen request in force.
#[derive(Default)]
pub(crate) struct Listening {
    /// Rises with each request, so that the end of a replaced one is told from the end of the session.
    number: u64,
    /// What the server acknowledged, of what was asked.
    pub(crate) honoured: BTreeSet<String>,
    stop: Option<ListenStop>,
}

impl Listening {
    pub(crate) fn is_open(&self) -> bool {
        self.stop.is_some()
    }

    /// Replaces the request in force by one for `wanted`.
    pub(crate) async fn reopen(
        &mut self,
        shared: &Arc<Shared>,
        wanted: BTreeSet<String>,
    ) -> Result<(), Failure> {
        let list_changed = shared.receipt.list_changed;
        if wanted.is_empty() && !list_changed {
            self.number += 1;
            self.honoured.clear();
            self.stop = None;
            shared.set_stream_open(false);
            return Ok(());
        }
        let mut filter = SubscriptionFilter::new();
        filter.resources_list_changed = list_changed.then_some(true);
        filter.resource_subscriptions =
            (!wanted.is_empty()).then(|| wanted.iter().cloned().collect());
        let filter = serde_json::to_value(filter)
            .map_err(|_| RequestError::protocol("the subscription filter cannot be written"))?;
        let call = Call::new(Era::Modern, LISTEN).with("notifications", filter);

        let opening = async {
            let mut feed = shared.link.listen(&call).await?;
            match feed.signals.recv().await {
                Some(ListenSignal::Acknowledged(uris)) => Ok((feed, uris)),
                Some(ListenSignal::Refused(failure)) => Err(failure),
                Some(ListenSignal::Completed) => Err(RequestError::protocol(
                    "the listen request was completed before it was acknowledged",
                )
                .into()),
                Some(ListenSignal::Broken) | None => Err(RequestError::Disconnected.into()),
            }
        };
        let (ListenFeed { signals, stop }, uris) =
            tokio::time::timeout(shared.limits.request_timeout, opening)
                .await
                .unwrap_or_else(|_| Err(RequestError::Timeout.into()))?;

        let honoured: BTreeSet<String> = uris
            .into_iter()
            .filter(|uri| wanted.contains(uri))
            .collect();
        let shrank = self
            .honoured
            .iter()
            .any(|uri| wanted.contains(uri) && !honoured.contains(uri));
        self.number += 1;
        self.honoured = honoured;
        self.stop = Some(stop);
        tokio::spawn(guard_end(Arc::clone(shared), self.number, signals));
        if !shared.set_stream_open(true) {
            shared.events.send(SessionEvent::StreamOpened);
        }
        if shrank {
            shared.events.send(SessionEvent::Gap {
                reason: GapReason::SubsetShrank,
            });
        }
        Ok(())
    }
}

/// Waits for a listen request's end. A replaced one may end as it likes; the one in force takes the session with it.
async fn guard_end(shared: Arc<Shared>, number: u64, mut signals: mpsc::Receiver<ListenSignal>) {
    loop {
        let reason = match signals.recv().await {
            // A second acknowledgement changes nothing.
            Some(ListenSignal::Acknowledged(_)) => continue,
            Some(ListenSignal::Completed) => EndReason::ListenCompleted,
            Some(ListenSignal::Refused(_) | ListenSignal::Broken) => EndReason::ListenBroken,
            None => return,
        };
        // A `watch` in progress holds the lock: the server may have closed the old stream on seeing the new one.
        if shared.listening.lock().await.number == number {
            shared.end(reason);
        }
        return;
    }
}

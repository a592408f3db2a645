//! Subscribing and unsubscribing on the wire, beside the session's loop.

use std::{sync::Arc, time::Duration};

use fencepost_ledger::{Generation, ResourceId};
use fencepost_mcp::{Era, Session, UnwatchOutcome, WatchOutcome};
use fencepost_store::Store;
use futures::{StreamExt, stream};
use tokio::sync::mpsc;

use super::table::Slot;

/// Subscribe requests of one session in flight: enough to hide a round trip, few enough for a
/// server that handles them one by one.
const CONCURRENT: usize = 16;
/// How long an unsubscribe may take before its generation is `UNSUBSCRIBE_UNKNOWN`.
const UNSUBSCRIBE_DEADLINE: Duration = Duration::from_secs(5);

/// A resource to subscribe to.
#[derive(Clone)]
pub struct Wanted {
    pub slot: Slot,
    pub uri: Arc<str>,
    /// Already active: it is subscribed again after a gap.
    pub again: bool,
}

/// The answer to one.
pub struct Watched {
    pub wanted: Wanted,
    pub outcome: WatchOutcome,
}

/// Subscribes to all of `wanted`, sending each answer as it comes: one that is swallowed delays no
/// other. A modern session sends one listen request for all.
pub async fn subscribe(client: Session, wanted: Vec<Wanted>, answers: mpsc::Sender<Watched>) {
    if client.receipt().era == Era::Modern {
        let uris: Vec<String> = wanted.iter().map(|w| w.uri.to_string()).collect();
        let outcomes = client.watch(&uris).await;
        for (wanted, outcome) in wanted.into_iter().zip(outcomes) {
            if answers.send(Watched { wanted, outcome }).await.is_err() {
                return;
            }
        }
        return;
    }
    let mut outcomes = stream::iter(wanted)
        .map(move |wanted| {
            let client = client.clone();
            async move {
                let outcomes = client.watch(&[wanted.uri.to_string()]).await;
                let outcome = outcomes.into_iter().next();
                outcome.map(|outcome| Watched { wanted, outcome })
            }
        })
        .buffer_unordered(CONCURRENT);
    while let Some(watched) = outcomes.next().await {
        if let Some(watched) = watched
            && answers.send(watched).await.is_err()
        {
            return;
        }
    }
}

/// A generation that has begun closing.
pub struct Closing {
    pub resource: ResourceId,
    pub generation: Generation,
    pub uri: String,
    /// Whether the server was told to notify; a polled one has nothing to unsubscribe.
    pub subscribed: bool,
}

/// Unsubscribes and records what the server made of it.
pub async fn unsubscribe(client: Session, store: Store, closing: Vec<Closing>) {
    let (subscribed, polled): (Vec<_>, Vec<_>) = closing.into_iter().partition(|c| c.subscribed);
    let mut finished: Vec<(ResourceId, Generation, bool)> = polled
        .iter()
        .map(|c| (c.resource, c.generation, true))
        .collect();
    if !subscribed.is_empty() {
        let uris: Vec<String> = subscribed.iter().map(|c| c.uri.clone()).collect();
        let outcomes = tokio::time::timeout(UNSUBSCRIBE_DEADLINE, client.unwatch(&uris)).await;
        let outcomes = outcomes.unwrap_or_default();
        for (index, c) in subscribed.iter().enumerate() {
            let acknowledged = matches!(outcomes.get(index), Some(UnwatchOutcome::Acknowledged));
            finished.push((c.resource, c.generation, acknowledged));
        }
    }
    if let Err(error) = store.finish_unsubscribe(&finished).await {
        // The generations stay UNSUBSCRIBING, which is as silent; the session's end closes them.
        tracing::warn!(
            category = error.category(),
            "unsubscribes were not recorded"
        );
    }
}

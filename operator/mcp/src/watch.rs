//! Watching URIs, in the way of each era, with one answer per URI.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};

use crate::config::Era;
use crate::error::RequestError;
use crate::message::Call;
use crate::session::Shared;

/// Subscribe and unsubscribe requests in flight at once, on one session.
const CONCURRENCY: usize = 16;

/// What became of watching one URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchOutcome {
    /// The server promised to tell. Whether it does is proven by its telling only.
    Watching,
    /// The server offers no subscriptions.
    Unsupported,
    /// The server acknowledged a subset without this URI.
    NotHonoured,
    Failed(RequestError),
}

/// What became of giving up one URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnwatchOutcome {
    Acknowledged,
    /// Whether the server still watches it is not known.
    Unknown(RequestError),
}

pub(crate) async fn watch(shared: &Arc<Shared>, uris: &[String]) -> Vec<WatchOutcome> {
    if shared.is_over() {
        return vec![WatchOutcome::Failed(RequestError::SessionLost); uris.len()];
    }
    if !shared.receipt.subscribe {
        return vec![WatchOutcome::Unsupported; uris.len()];
    }
    match shared.receipt.era {
        Era::Legacy => each(uris, |uri| subscribe(shared, uri)).await,
        Era::Modern => listen_to(shared, uris).await,
    }
}

pub(crate) async fn unwatch(shared: &Arc<Shared>, uris: &[String]) -> Vec<UnwatchOutcome> {
    if shared.is_over() {
        return vec![UnwatchOutcome::Unknown(RequestError::SessionLost); uris.len()];
    }
    match shared.receipt.era {
        Era::Legacy => each(uris, |uri| unsubscribe(shared, uri)).await,
        Era::Modern => listen_without(shared, uris).await,
    }
}

/// Asks for each URI by itself. Answers may come in any order; one that never comes holds one place until its deadline.
async fn each<'a, T: Send + 'a, F: Future<Output = T> + Send + 'a>(
    uris: &'a [String],
    ask: impl Fn(&'a str) -> F,
) -> Vec<T> {
    // Boxed and gathered first: a closure held across an await keeps callers from being spawned.
    let asked: Vec<BoxFuture<'a, (usize, T)>> = uris
        .iter()
        .enumerate()
        .map(|(n, uri)| {
            let asked = ask(uri);
            async move { (n, asked.await) }.boxed()
        })
        .collect();
    let mut outcomes: Vec<(usize, T)> = stream::iter(asked)
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    outcomes.sort_unstable_by_key(|(n, _)| *n);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

async fn subscribe(shared: &Shared, uri: &str) -> WatchOutcome {
    // Said once, it holds for the session: nobody is asked a hundred times for a method that is not there.
    if shared.subscribe_missing.load(Ordering::Relaxed) {
        return WatchOutcome::Unsupported;
    }
    match shared
        .call(&Call::new(Era::Legacy, "resources/subscribe").about(uri))
        .await
    {
        Ok(_) => WatchOutcome::Watching,
        Err(RequestError::MethodNotFound) => {
            shared.subscribe_missing.store(true, Ordering::Relaxed);
            WatchOutcome::Unsupported
        }
        Err(error) => WatchOutcome::Failed(error),
    }
}

async fn unsubscribe(shared: &Shared, uri: &str) -> UnwatchOutcome {
    match shared
        .call(&Call::new(Era::Legacy, "resources/unsubscribe").about(uri))
        .await
    {
        Ok(_) => UnwatchOutcome::Acknowledged,
        Err(error) => UnwatchOutcome::Unknown(error),
    }
}

async fn listen_to(shared: &Arc<Shared>, uris: &[String]) -> Vec<WatchOutcome> {
    let mut listening = shared.listening.lock().await;
    let all_there = listening.is_open() && uris.iter().all(|uri| listening.honoured.contains(uri));
    if !all_there {
        let mut wanted: BTreeSet<String> = listening.honoured.clone();
        wanted.extend(uris.iter().cloned());
        if let Err(failure) = listening.reopen(shared, wanted).await {
            let outcome = match shared.note(failure.error) {
                RequestError::MethodNotFound => WatchOutcome::Unsupported,
                error => WatchOutcome::Failed(error),
            };
            return vec![outcome; uris.len()];
        }
    }
    let honoured = |uri| {
        if listening.honoured.contains(uri) {
            WatchOutcome::Watching
        } else {
            WatchOutcome::NotHonoured
        }
    };
    uris.iter().map(honoured).collect()
}

async fn listen_without(shared: &Arc<Shared>, uris: &[String]) -> Vec<UnwatchOutcome> {
    let mut listening = shared.listening.lock().await;
    let mut wanted = listening.honoured.clone();
    for uri in uris {
        wanted.remove(uri);
    }
    if wanted.len() < listening.honoured.len()
        && let Err(failure) = listening.reopen(shared, wanted).await
    {
        return vec![UnwatchOutcome::Unknown(shared.note(failure.error)); uris.len()];
    }
    vec![UnwatchOutcome::Acknowledged; uris.len()]
}

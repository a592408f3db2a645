//! The live signals: who wants to know says so, and is told "look again".
//!
//! A signal carries no data. The channel is bounded: a receiver that lags loses signals and is told to
//! look at everything; a sender never waits.

use std::sync::Arc;

use fencepost_ledger::ResourceId;
use fencepost_views::{LiveEvent, LiveKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

/// Signals kept for the slowest receiver: a stampede of 1,000 resources within its reading pause.
const CAPACITY: usize = 1024;

/// Streams open at once: each costs a socket and a task; a tab has one, and hidden tabs none.
pub const MAX_STREAMS: usize = 512;

/// Where signals are given and taken. Clones share one channel.
#[derive(Debug, Clone)]
pub struct Live {
    signals: broadcast::Sender<LiveEvent>,
    streams: Arc<Semaphore>,
}

/// A place among the streams; it is free again when this is dropped.
#[derive(Debug)]
pub struct Subscription {
    signals: broadcast::Receiver<LiveEvent>,
    _place: OwnedSemaphorePermit,
}

impl Live {
    pub fn new() -> Self {
        Self::with_streams(MAX_STREAMS)
    }

    /// With another bound on the streams.
    pub fn with_streams(streams: usize) -> Self {
        Self {
            signals: broadcast::Sender::new(CAPACITY),
            streams: Arc::new(Semaphore::new(streams)),
        }
    }

    /// Tells whoever listens; nobody listening is no failure.
    pub fn tell(&self, kind: LiveKind, id: Option<String>) {
        let _nobody = self.signals.send(LiveEvent { kind, id });
    }

    /// The ledger's rows of a resource moved.
    pub fn resource(&self, id: ResourceId) {
        self.tell(LiveKind::Resource, Some(id.to_string()));
    }

    /// A server's session opened or ended.
    pub fn server(&self, namespace: &str, name: &str) {
        self.tell(LiveKind::Server, Some(format!("{namespace}/{name}")));
    }

    /// There are new samples.
    pub fn sample(&self) {
        self.tell(LiveKind::Sample, None);
    }

    /// None when all places are taken.
    pub fn subscribe(&self) -> Option<Subscription> {
        let place = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        Some(Subscription {
            signals: self.signals.subscribe(),
            _place: place,
        })
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Subscription {
    /// The next signal; `Resync` in place of those that were lost. None when nobody can tell any more.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        match self.signals.recv().await {
            Ok(signal) => Some(signal),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(LiveEvent {
                kind: LiveKind::Resync,
                id: None,
            }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn who_lags_is_told_to_look_at_everything() {
        let live = Live::new();
        let mut subscription = live.subscribe().unwrap();
        for id in 0..=CAPACITY {
            live.tell(LiveKind::Resource, Some(id.to_string()));
        }
        assert_eq!(subscription.next().await.unwrap().kind, LiveKind::Resync);
        assert_eq!(subscription.next().await.unwrap().id.as_deref(), Some("1"));
    }

    #[test]
    fn a_place_is_free_again_when_its_stream_ends() {
        let live = Live::with_streams(1);
        let first = live.subscribe().unwrap();
        assert!(live.subscribe().is_none());
        drop(first);
        assert!(live.subscribe().is_some());
    }
}

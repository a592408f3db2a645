//! What became different in the folder, as told to every session.
//!
//! A change carries names, never contents: the reader looks again. A session that falls behind by more than the buffer holds is
//! told that everything may be different.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::broadcast;

/// Changes kept for a slow session. One comes per folding window (50 ms), so this is about 13 s of constant change.
const BUFFER: usize = 256;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Change {
    /// URIs of files edited, created or deleted.
    pub updated: BTreeSet<String>,
    /// Whether files came or went.
    pub list: bool,
}

#[derive(Debug, Clone)]
pub struct Changes(broadcast::Sender<Arc<Change>>);

#[derive(Debug)]
pub struct Follower(broadcast::Receiver<Arc<Change>>);

/// What a follower is told.
#[derive(Debug)]
pub enum Told {
    These(Arc<Change>),
    Everything,
}

impl Changes {
    pub fn new() -> Self {
        Self(broadcast::channel(BUFFER).0)
    }

    pub fn tell(&self, change: Change) {
        // No follower is no fault: nobody is connected.
        drop(self.0.send(Arc::new(change)));
    }

    pub fn follow(&self) -> Follower {
        Follower(self.0.subscribe())
    }
}

impl Follower {
    /// The next change, or `None` when the server ends.
    pub async fn next(&mut self) -> Option<Told> {
        match self.0.recv().await {
            Ok(change) => Some(Told::These(change)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Told::Everything),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Told {
    /// Those of `subscribed` that may be different.
    pub fn updated<'a>(
        &'a self,
        subscribed: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = &'a String> {
        subscribed.iter().filter(move |uri| match self {
            Self::These(change) => change.updated.contains(*uri),
            Self::Everything => true,
        })
    }

    pub fn list(&self) -> bool {
        match self {
            Self::These(change) => change.list,
            Self::Everything => true,
        }
    }
}

//! Marks of notifications and gaps, for the picture of a resource's reads and for `UPDATE_SEEN`.
//!
//! Written in the background, folded by resource: a storm of notifications for one URI is one mark
//! with a count. Display only; no fence rests on a mark, and under overload the newest are dropped.

use std::{collections::HashMap, time::Duration};

use fencepost_ledger::{Generation, ResourceId};
use fencepost_store::{MarkKind, MarkRow, Store};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

/// How long marks are gathered: short beside the second that a dashboard refreshes in.
const GATHER: Duration = Duration::from_millis(100);
/// Marks waiting at most: a stampede of 12,000 URIs fits.
const BUFFER: usize = 16_384;

/// One mark, as the session task saw it.
struct Seen {
    resource: ResourceId,
    kind: MarkKind,
    generation: Generation,
    at: Instant,
    detail: Option<&'static str>,
}

/// Handle to the writer.
#[derive(Clone)]
pub struct Marks(mpsc::Sender<Seen>);

impl Marks {
    pub fn start(store: Store, shutdown: CancellationToken) -> Self {
        let (sender, receiver) = mpsc::channel(BUFFER);
        tokio::spawn(write(store, receiver, shutdown));
        Self(sender)
    }

    pub fn notification(&self, resource: ResourceId, generation: Generation) {
        self.send(resource, MarkKind::Notification, generation, None);
    }

    pub fn gap(&self, resource: ResourceId, generation: Generation, reason: &'static str) {
        self.send(resource, MarkKind::Gap, generation, Some(reason));
    }

    fn send(
        &self,
        resource: ResourceId,
        kind: MarkKind,
        generation: Generation,
        detail: Option<&'static str>,
    ) {
        let seen = Seen {
            resource,
            kind,
            generation,
            at: Instant::now(),
            detail,
        };
        if self.0.try_send(seen).is_err() {
            tracing::debug!("a mark was dropped: its buffer is full");
        }
    }
}

async fn write(store: Store, mut receiver: mpsc::Receiver<Seen>, shutdown: CancellationToken) {
    loop {
        let first = tokio::select! {
            seen = receiver.recv() => match seen {
                Some(seen) => seen,
                None => return,
            },
            () = shutdown.cancelled() => return,
        };
        tokio::time::sleep(GATHER).await;
        let mut folded: HashMap<_, (Instant, u64, Option<&'static str>)> = HashMap::new();
        let mut fold = |seen: Seen| {
            let key = (seen.resource, seen.kind, seen.generation);
            folded
                .entry(key)
                .and_modify(|(_, count, _)| *count += 1)
                .or_insert((seen.at, 1, seen.detail));
        };
        fold(first);
        while let Ok(seen) = receiver.try_recv() {
            fold(seen);
        }
        let rows: Vec<MarkRow> = folded
            .into_iter()
            .map(
                |((resource, kind, generation), (at, count, detail))| MarkRow {
                    resource,
                    age: at.elapsed(),
                    kind,
                    generation,
                    detail: match (count, detail) {
                        (1, detail) => detail.map(str::to_owned),
                        (n, None) => Some(format!("{n} times")),
                        (n, Some(detail)) => Some(format!("{detail}, {n} times")),
                    },
                },
            )
            .collect();
        if let Err(error) = store.mark(&rows).await {
            tracing::warn!(
                category = error.category(),
                marks = rows.len(),
                "marks were not written"
            );
        }
    }
}

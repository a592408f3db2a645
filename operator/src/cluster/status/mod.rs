//! From the ledger back to the objects: conditions, counts, samples, Events, and the end of finalizers.
//!
//! In: the last look at the cluster, what was published of it, and the ledger. Out: one server-side apply of status for each object
//! whose status says something else now, and none otherwise. Only the leader writes; uid and version in every write make sure that a
//! former leader overwrites nothing.

mod catalog;
mod closing;
mod draft;
mod facts;
mod index;
mod plan;
mod problems;
mod server;
mod stand;
mod subject;
mod transitions;
mod watch;
mod write;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fencepost_store::queries::Queries;
use kube::Client;
use tokio::sync::watch as channel;
use tokio_util::sync::CancellationToken;

use super::source::Look;
use crate::{desired::Desired, live::Live, publish::Authority};
use closing::Closings;
use write::Writer;

/// Changes of the ledger are gathered for so long.
const GATHER: Duration = Duration::from_millis(500);
/// A round without any signal: what only time changes, such as a bound that passes.
const EVERY: Duration = Duration::from_secs(10);
/// A round may take at most this share of the time: then rounds come less often, not longer.
const SHARE: u32 = 5;

/// What the status rounds work with.
pub struct Statuses {
    pub client: Client,
    pub queries: Queries,
    pub live: Live,
    pub identity: String,
    pub finalizer_deadline: Duration,
}

/// How long the ledger may be silent before the objects say so: longer than a failover.
const SILENCE: Duration = Duration::from_secs(30);

/// Whether the ledger answers.
#[derive(Default)]
struct Ledger {
    silent_since: Option<Instant>,
}

impl Ledger {
    fn heard(&mut self, answered: bool) {
        if answered {
            self.silent_since = None;
        } else {
            self.silent_since.get_or_insert_with(Instant::now);
        }
    }

    fn is_lost(&self) -> bool {
        self.silent_since
            .is_some_and(|since| since.elapsed() > SILENCE)
    }
}

/// What a round is made of.
pub struct Inputs {
    pub looks: channel::Receiver<Option<Arc<Look>>>,
    pub published: channel::Receiver<Option<Arc<Desired>>>,
    pub authority: channel::Receiver<Authority>,
}

impl Statuses {
    /// Writes statuses until `shutdown`, while this replica leads.
    pub async fn run(self, mut inputs: Inputs, shutdown: CancellationToken) {
        let mut signals = self.live.subscribe();
        let mut writer = Writer::new(self.client.clone(), &self.identity);
        let mut ledger = Ledger::default();
        let closings = Closings::new(
            self.client.clone(),
            self.queries.clone(),
            self.finalizer_deadline,
        );
        loop {
            let began = Instant::now();
            let look = inputs.looks.borrow_and_update().clone();
            let published = inputs.published.borrow_and_update().clone();
            let leads = matches!(*inputs.authority.borrow_and_update(), Authority::Claimed(_));
            if leads && let Some(look) = look {
                let current = published.is_some_and(|done| Arc::ptr_eq(&done, &look.desired));
                closings.round(&look, current, &mut writer).await;
                ledger.heard(self.round(&look, current, &mut writer).await);
                if ledger.is_lost() {
                    writer.write(&look, plan::without_ledger(&look)).await;
                }
            }
            let rest = (began.elapsed() * SHARE).clamp(GATHER, EVERY);
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = shutdown.cancelled() => return,
            }
            tokio::select! {
                changed = inputs.looks.changed() => if changed.is_err() { return },
                changed = inputs.published.changed() => if changed.is_err() { return },
                changed = inputs.authority.changed() => if changed.is_err() { return },
                () = signal(&mut signals) => {}
                () = tokio::time::sleep(EVERY) => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Whether the ledger answered.
    async fn round(&self, look: &Look, current: bool, writer: &mut Writer) -> bool {
        let watches: Vec<String> = look
            .desired
            .watches
            .iter()
            .map(|watch| watch.key.to_string())
            .collect();
        match facts::Facts::gather(&self.queries, &watches).await {
            Ok(facts) => {
                // A status is about what was published; between a change and its publication it says nothing.
                if current {
                    writer.write(look, plan::drafts(look, &facts)).await;
                }
                true
            }
            Err(error) => {
                tracing::debug!(
                    error = %crate::sentence::chain(&error),
                    "no statuses: the ledger does not answer"
                );
                false
            }
        }
    }
}

/// The next signal of the ledger; samples are none.
async fn signal(signals: &mut Option<crate::live::Subscription>) {
    match signals {
        Some(subscription) => {
            while let Some(event) = subscription.next().await {
                if event.kind != fencepost_views::LiveKind::Sample {
                    return;
                }
            }
            *signals = None;
        }
        None => std::future::pending().await,
    }
}

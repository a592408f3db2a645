//! Telling derived indexes: each event at least once, in order per resource, signed.
//!
//! In come the desired indexes and the outbox; out go webhook requests and, in the ledger, how far
//! each index has confirmed. One task an index, so that a dead one delays no other; a lease an index,
//! so that one replica tells it. What is in memory is positions; bodies are built anew from the ledger
//! for every try, always the same, and signed anew.

mod backlog;
mod bell;
mod courier;
mod webhook;

use std::{collections::HashMap, sync::Arc, time::Duration};

use fencepost_ledger::backoff::Backoff;
use fencepost_mcp::EgressPolicy;
use fencepost_store::Store;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    desired::{Desired, DesiredIndex},
    live::Live,
    metrics::{Metrics, Name},
    publish::ledger_uid,
};
use courier::Courier;

/// How patient deliveries are.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryConfig {
    /// A receiver that has not answered by then is asked again.
    pub timeout: Duration,
    /// Between tries.
    pub retry: Backoff,
}

impl Default for DeliveryConfig {
    /// Ten seconds, as webhook senders commonly wait. Tries go on for ever, at most a minute apart: an
    /// index that comes back after a day is told everything within a minute.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            retry: Backoff {
                first: Duration::from_millis(500),
                cap: Duration::from_mins(1),
            },
        }
    }
}

/// What every courier works with.
#[derive(Clone)]
struct Context {
    store: Store,
    egress: EgressPolicy,
    metrics: Arc<Metrics>,
    live: Live,
    config: DeliveryConfig,
}

pub struct Deliveries {
    context: Context,
}

impl Deliveries {
    pub fn new(store: Store, egress: EgressPolicy, metrics: Arc<Metrics>, live: Live) -> Self {
        Self::with_config(store, egress, metrics, live, DeliveryConfig::default())
    }

    pub fn with_config(
        store: Store,
        egress: EgressPolicy,
        metrics: Arc<Metrics>,
        live: Live,
        config: DeliveryConfig,
    ) -> Self {
        Self {
            context: Context {
                store,
                egress,
                metrics,
                live,
                config,
            },
        }
    }

    /// Delivers to what is desired until `shutdown`; then waits for what is in flight, a moment.
    pub async fn run(
        self,
        mut desired: watch::Receiver<Arc<Desired>>,
        shutdown: CancellationToken,
    ) {
        let (bell, head) = bell::start(self.context.store.clone(), shutdown.clone());
        let mut couriers: HashMap<Uuid, Running> = HashMap::new();
        loop {
            let indexes = Arc::clone(&desired.borrow_and_update());
            self.match_up(&mut couriers, &indexes.indexes, &head, &shutdown);
            tokio::select! {
                changed = desired.changed() => if changed.is_err() { break },
                () = shutdown.cancelled() => break,
            }
        }
        shutdown.cancelled().await;
        for running in couriers.into_values() {
            // A courier that panicked has said so; its lease runs out.
            let _ = running.task.await;
        }
        let _ = bell.await;
    }

    /// One courier for each index, a new one where its object has changed.
    fn match_up(
        &self,
        couriers: &mut HashMap<Uuid, Running>,
        indexes: &[DesiredIndex],
        head: &watch::Receiver<i64>,
        shutdown: &CancellationToken,
    ) {
        let wanted: HashMap<Uuid, &DesiredIndex> = indexes
            .iter()
            .map(|index| (ledger_uid(&index.key.uid), index))
            .collect();
        let mut ending = HashMap::new();
        couriers.retain(|uid, running| {
            let stays = wanted
                .get(uid)
                .is_some_and(|index| **index == running.index)
                && !running.task.is_finished();
            if !stays {
                running.stop.cancel();
                let ended = std::mem::replace(&mut running.task, tokio::spawn(async {}));
                ending.insert(*uid, ended);
            }
            stays
        });
        for (uid, index) in wanted {
            if couriers.contains_key(&uid) {
                continue;
            }
            let stop = shutdown.child_token();
            let before = ending.remove(&uid);
            let courier = Courier::new(
                uid,
                index.clone(),
                self.context.clone(),
                head.clone(),
                stop.clone(),
            );
            let task = tokio::spawn(async move {
                if let Some(before) = before {
                    // Two at once would tell events of one resource beside each other.
                    let _ = before.await;
                }
                courier.run().await;
            });
            couriers.insert(
                uid,
                Running {
                    index: index.clone(),
                    stop,
                    task,
                },
            );
        }
        let names: Vec<Name> = indexes
            .iter()
            .map(|index| Name::new(&index.key.namespace, &index.key.name))
            .collect();
        self.context.metrics.retain_indexes(&names);
    }
}

struct Running {
    index: DesiredIndex,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

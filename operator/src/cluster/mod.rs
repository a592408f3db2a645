//! Kubernetes: the objects of a cluster as desired state, and what became of them as their status.
//!
//! Dereference and validate (`informers`, `view`, `secrets`), plan (`crate::desired`), publish (the ledger, under a claim), status
//! (`status`). One way round: a status is never read back as an input. Signals carry no data: each round looks at everything that the
//! watches have, and writes only what differs.

mod failure;
mod finalizer;
mod informer;
mod informers;
mod leader;
mod permissions;
mod ready;
mod schema_check;
mod scope;
mod secrets;
mod source;
mod status;
mod view;
mod watched;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use fencepost_store::{Store, queries::Queries};
use kube::Client;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use leader::Election;
pub use permissions::{Permission, Where, rules, table};
pub use ready::ClusterReadiness;
pub use scope::Scope;

use crate::{
    api::ReadinessChecks, desired::Desired, live::Live, metrics::Metrics, publish::Authority,
};
use source::{Outlets, Source, SourceConfig};
use status::{Inputs, Statuses};

/// What a command gives.
pub struct ClusterConfig {
    pub client: Client,
    pub store: Store,
    pub scope: Scope,
    /// DNS suffix of the cluster, as in `cluster.local`.
    pub domain: String,
    pub election: Election,
    pub metrics: Arc<Metrics>,
    pub live: Live,
    pub finalizer_deadline: Duration,
    /// Callers are judged by reviews, which needs permissions of its own.
    pub reviews: bool,
}

/// The cluster's side of the operator. What it tells goes into the runtime.
pub struct Cluster {
    pub desired: watch::Receiver<Arc<Desired>>,
    pub authority: watch::Receiver<Authority>,
    pub readiness: Arc<dyn ReadinessChecks>,
    statuses: Statuses,
    looks: watch::Receiver<Option<Arc<source::Look>>>,
    tasks: Vec<JoinHandle<()>>,
    election: JoinHandle<()>,
}

impl Cluster {
    /// Begins to watch. Nothing is desired before the first look is complete.
    pub fn start(config: ClusterConfig, shutdown: &CancellationToken) -> Self {
        let (desired, is_desired) = watch::channel(Arc::new(Desired::default()));
        let (authority, has_authority) = watch::channel(Authority::Standby);
        let (looks, looked) = watch::channel(None);
        let (leading, leads) = watch::channel(false);
        let incomplete = Arc::new(Mutex::new(vec![("everything".to_owned(), None)]));
        let permissions = permissions::Missing::default();
        let definitions = ready::Definitions::default();
        let identity = config.election.identity.clone();

        let election = tokio::spawn(leader::run(
            config.client.clone(),
            config.election.clone(),
            leading,
            shutdown.clone(),
        ));
        let checks = permissions::Checks {
            client: config.client.clone(),
            scope: config.scope.clone(),
            own_namespace: config.election.namespace.clone(),
            reviews: config.reviews,
        };
        let source = Source::new(
            SourceConfig {
                client: config.client.clone(),
                store: config.store.clone(),
                scope: config.scope,
                domain: config.domain,
                metrics: Arc::clone(&config.metrics),
                leads,
                election: config.election.clone(),
            },
            Outlets {
                desired,
                authority,
                looks,
                incomplete: Arc::clone(&incomplete),
            },
        );
        let metrics = config.metrics;
        let missing = Arc::clone(&permissions);
        let permissions_task = async move {
            checks
                .run(missing, |now| {
                    metrics.missing_permissions(
                        now.iter().map(|verb| (verb.verb, verb.resource.as_str())),
                    );
                })
                .await;
        };
        let tasks = vec![
            tokio::spawn(source.run(shutdown.clone())),
            tokio::spawn(until(shutdown.clone(), permissions_task)),
            tokio::spawn(until(
                shutdown.clone(),
                ready::watch_definitions(config.client.clone(), Arc::clone(&definitions)),
            )),
        ];
        Self {
            desired: is_desired,
            authority: has_authority,
            readiness: Arc::new(ClusterReadiness {
                incomplete,
                permissions,
                definitions,
            }),
            statuses: Statuses {
                client: config.client,
                queries: Queries::new(config.store.clone()),
                live: config.live,
                identity,
                finalizer_deadline: config.finalizer_deadline,
            },
            looks: looked,
            tasks,
            election,
        }
    }

    /// Writes statuses of what is `published` until `shutdown`; then lets the leader's lease go.
    pub async fn report(
        self,
        published: watch::Receiver<Option<Arc<Desired>>>,
        shutdown: CancellationToken,
    ) {
        let inputs = Inputs {
            looks: self.looks,
            published,
            authority: self.authority,
        };
        self.statuses.run(inputs, shutdown).await;
        futures::future::join_all(self.tasks).await;
        if self.election.await.is_err() {
            tracing::warn!("the election broke off");
        }
    }
}

async fn until(shutdown: CancellationToken, work: impl Future<Output = ()>) {
    shutdown.run_until_cancelled(work).await;
}

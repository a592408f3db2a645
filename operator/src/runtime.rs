//! The composition root: the one place that knows every part and ties them together.
//!
//! In comes desired state; engine, deliveries, janitor, sampler and the HTTP surfaces run until the
//! shutdown, then end in that order: sessions close first, so that their last words reach the ledger.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use fencepost_mcp::EgressPolicy;
use fencepost_store::{Store, queries::Queries};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{self, Access},
    api::{self, ApiState, Hosts},
    desired::Desired,
    engine::{Context, EngineConfig, Supervisor},
    live::Live,
    metrics::Metrics,
    outbox::Deliveries,
    publish::Authority,
    readiness, sampler, web,
};

/// What a command gives.
pub struct RuntimeConfig {
    pub store: Store,
    pub listen: SocketAddr,
    pub egress: EgressPolicy,
    pub allow_stdio: bool,
    pub metrics: Arc<Metrics>,
    pub live: Live,
    /// By what right this process publishes the manifests.
    pub authority: watch::Receiver<Authority>,
    /// What the source of the manifests misses, for `/readyz`.
    pub source: Option<Arc<dyn api::ReadinessChecks>>,
    /// Who may ask what.
    pub access: Access,
}

/// Why the parts could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("{0} is in use by another process; stop it or choose another address with --listen")]
    AddressInUse(SocketAddr),
    #[error("cannot listen on {address}; choose another address with --listen")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
}

/// Everything that runs.
pub struct Runtime {
    address: SocketAddr,
    published: watch::Receiver<Option<Arc<Desired>>>,
    supervisor: JoinHandle<()>,
    beside: Vec<JoinHandle<()>>,
    /// Ends what has to outlive the sessions.
    last: CancellationToken,
}

/// How long what outlives the sessions may take.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Runtime {
    /// Binds the address and starts every part.
    pub async fn start(
        config: RuntimeConfig,
        desired: watch::Receiver<Arc<Desired>>,
        shutdown: CancellationToken,
    ) -> Result<Self, RuntimeError> {
        let listener = TcpListener::bind(config.listen).await.map_err(|source| {
            if source.kind() == std::io::ErrorKind::AddrInUse {
                RuntimeError::AddressInUse(config.listen)
            } else {
                RuntimeError::Listen {
                    address: config.listen,
                    source,
                }
            }
        })?;
        let address = listener
            .local_addr()
            .map_err(|source| RuntimeError::Listen {
                address: config.listen,
                source,
            })?;
        let last = CancellationToken::new();
        let (live, metrics) = (config.live.clone(), Arc::clone(&config.metrics));
        let (publish, published) = watch::channel(None);
        let mut beside = Vec::new();

        let context = Context::start(
            EngineConfig {
                store: config.store.clone(),
                metrics: Arc::clone(&metrics),
                live: live.clone(),
                egress: config.egress.clone(),
                allow_stdio: config.allow_stdio,
            },
            &last,
        );
        let supervisor = tokio::spawn(Supervisor::new(context).run(
            desired.clone(),
            config.authority,
            publish,
            shutdown.clone(),
        ));

        let deliveries = Deliveries::new(
            config.store.clone(),
            config.egress,
            Arc::clone(&metrics),
            live.clone(),
        );
        beside.push(tokio::spawn(deliveries.run(desired.clone(), last.clone())));
        beside.push(tokio::spawn(fencepost_store::janitor::run(
            config.store.clone(),
            last.clone(),
        )));
        beside.push(tokio::spawn(sampler::run(
            config.store.clone(),
            Arc::clone(&metrics),
            live.clone(),
            last.clone(),
        )));

        let reads_per_hour = Arc::new(ArcSwap::from_pointee(BTreeMap::new()));
        let state = ApiState {
            queries: Queries::new(config.store.clone()),
            store: config.store.clone(),
            live,
            metrics,
            readiness: Arc::new(readiness::Checks::new(
                config.store,
                published.clone(),
                config.source,
            )),
            reads_per_hour: Arc::clone(&reads_per_hour),
            hosts: Hosts::for_listen(&address.to_string()),
            shutdown: shutdown.clone(),
        };
        beside.push(tokio::spawn(keep_load(
            desired,
            reads_per_hour,
            last.clone(),
        )));
        let router = api::router(state.clone()).merge(web::router(state.source()));
        let router = access::controlled(router, config.access, &state.queries);
        let router = api::guarded(router, state.hosts);
        let drain = shutdown;
        beside.push(tokio::spawn(async move {
            let served = axum::serve(listener, router)
                .with_graceful_shutdown(drain.cancelled_owned())
                .await;
            if let Err(error) = served {
                tracing::error!(%error, "the HTTP server ended");
            }
        }));
        Ok(Self {
            address,
            published,
            supervisor,
            beside,
            last,
        })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What of the desired state was acted on last.
    pub fn published(&self) -> watch::Receiver<Option<Arc<Desired>>> {
        self.published.clone()
    }

    /// Waits for the shutdown and for every part to end.
    pub async fn finished(self) {
        if self.supervisor.await.is_err() {
            tracing::error!("the supervisor broke off");
        }
        self.last.cancel();
        let beside = futures::future::join_all(self.beside);
        if tokio::time::timeout(LAST_WORDS, beside).await.is_err() {
            tracing::warn!("some parts did not end in time");
        }
    }
}

/// Keeps the load arithmetic of the manifests for the API.
async fn keep_load(
    mut desired: watch::Receiver<Arc<Desired>>,
    load: Arc<ArcSwap<BTreeMap<(String, String), f64>>>,
    end: CancellationToken,
) {
    loop {
        let now = Arc::clone(&desired.borrow_and_update());
        load.store(Arc::new(crate::desired::load::reads_per_hour(&now)));
        tokio::select! {
            changed = desired.changed() => if changed.is_err() { return },
            () = end.cancelled() => return,
        }
    }
}

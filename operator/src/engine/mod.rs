//! The engine: desired state in, accepted versions out.
//!
//! `desired` comes in through a watch channel; for each (server, subject) one session task holds a
//! lease, connects, subscribes, and turns pulses into reads; each read is issued and settled through
//! the store. Nothing here decides what is true: that is the acceptance point's business. Signals
//! carry no data: a notification only ever means "look again".

mod answer;
mod connected;
mod credentials;
mod lease;
mod limits;
mod marks;
mod read;
mod session;
mod subscribe;
mod supervisor;
mod table;
mod untrusted;

pub use supervisor::Supervisor;

use std::sync::Arc;

use fencepost_mcp::EgressPolicy;
use fencepost_store::Store;
use tokio_util::sync::CancellationToken;

use crate::{live::Live, metrics::Metrics};
use lease::Leases;
use marks::Marks;

/// What every session task works with.
#[derive(Clone)]
pub struct Context {
    pub store: Store,
    pub metrics: Arc<Metrics>,
    pub live: Live,
    pub egress: EgressPolicy,
    /// Whether `stdio` servers may be started: only `dev` and an explicit flag say so.
    pub allow_stdio: bool,
    pub(crate) leases: Leases,
    pub(crate) marks: Marks,
}

/// What the composition root gives; the rest of [`Context`] is the engine's own.
pub struct EngineConfig {
    pub store: Store,
    pub metrics: Arc<Metrics>,
    pub live: Live,
    pub egress: EgressPolicy,
    pub allow_stdio: bool,
}

impl Context {
    /// Starts the lease keeper and the writer of marks; both end with `shutdown`.
    pub fn start(config: EngineConfig, shutdown: &CancellationToken) -> Self {
        let leases = Leases::start(config.store.clone(), shutdown.clone());
        let marks = Marks::start(config.store.clone(), shutdown.clone());
        Self {
            store: config.store,
            metrics: config.metrics,
            live: config.live,
            egress: config.egress,
            allow_stdio: config.allow_stdio,
            leases,
            marks,
        }
    }
}

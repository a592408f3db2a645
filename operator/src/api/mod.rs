//! The HTTP API: read-only answers from the ledger, as `docs/api.md` describes them.
//!
//! In come requests of people and programs that may be anybody, out go the shapes of
//! `fencepost-views` or problem documents. Every parameter is known or refused, every list is paged,
//! nothing is cached, and no answer may be read by a web page of another origin.

mod content;
mod events;
mod guard;
mod health;
mod history;
mod limits;
mod lists;
mod openapi;
mod outbox;
mod overview;
mod parameters;
mod problem;
mod readiness;
mod resources;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::{
    Router, middleware,
    routing::{MethodRouter, any, get},
};
use fencepost_dashboard::source::Source;
use fencepost_store::{Store, queries::Queries};
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

pub use guard::{Hosts, guarded};
pub use openapi::document;
pub use problem::ApiError;
pub use readiness::{Missing, ReadinessChecks};
pub use source::LedgerSource;

use crate::{live::Live, metrics::Metrics};

/// Reads an hour that the manifests cause, by (namespace, name) of the server.
pub type ReadsPerHour = Arc<ArcSwap<BTreeMap<(String, String), f64>>>;

/// What the API answers from.
#[derive(Clone)]
pub struct ApiState {
    pub store: Store,
    pub queries: Queries,
    pub live: Live,
    pub metrics: Arc<Metrics>,
    pub readiness: Arc<dyn ReadinessChecks>,
    pub reads_per_hour: ReadsPerHour,
    /// Whom requests may be addressed to.
    pub hosts: Hosts,
    /// Ends the open event streams, so that they do not hold up the shutdown.
    pub shutdown: CancellationToken,
}

impl ApiState {
    /// State without any known read load, answering whoever asks.
    pub fn new(store: Store, metrics: Arc<Metrics>, readiness: Arc<dyn ReadinessChecks>) -> Self {
        Self {
            queries: Queries::new(store.clone()),
            store,
            live: Live::new(),
            metrics,
            readiness,
            reads_per_hour: ReadsPerHour::default(),
            hosts: Hosts::any(),
            shutdown: CancellationToken::new(),
        }
    }

    /// The same answers for the pages that this process renders.
    pub fn source(&self) -> Arc<dyn Source> {
        Arc::new(LedgerSource::new(self.clone()))
    }
}

/// JSON of bounded size, whose text may be compressed.
fn documents() -> Vec<(&'static str, MethodRouter<ApiState>)> {
    vec![
        ("/api/openapi.json", get(openapi::answer)),
        ("/api/v1/servers", get(lists::servers)),
        ("/api/v1/subjects", get(lists::subjects)),
        ("/api/v1/watches", get(lists::watches)),
        ("/api/v1/indexes", get(lists::indexes)),
        ("/api/v1/resources", get(resources::list)),
        ("/api/v1/resources/{id}", get(resources::one)),
        ("/api/v1/resources/{id}/versions", get(history::versions)),
        (
            "/api/v1/resources/{id}/versions/{ordinal}/text",
            get(history::version_text),
        ),
        ("/api/v1/resources/{id}/receipts", get(history::receipts)),
        ("/api/v1/resources/{id}/timeline", get(history::timeline)),
        ("/api/v1/resources/{id}/supersede", get(history::supersede)),
        ("/api/v1/outbox", get(outbox::list)),
        ("/api/v1/overview", get(overview::overview)),
        ("/api/v1/series", get(overview::series)),
        ("/metrics", get(health::metrics)),
        ("/healthz", get(health::alive)),
        ("/readyz", get(readiness::answer)),
    ]
}

/// Bytes and streams as they are: a content's `ETag` names its exact bytes, and a stream must not wait
/// for a compressor's buffer.
fn raw() -> Vec<(&'static str, MethodRouter<ApiState>)> {
    vec![
        ("/api/v1/resources/{id}/content", get(content::content)),
        ("/api/v1/events", get(events::stream)),
    ]
}

/// Every path that the router answers, as the `OpenAPI` document spells it.
pub fn paths() -> Vec<&'static str> {
    documents()
        .into_iter()
        .chain(raw())
        .map(|(path, _)| path)
        .collect()
}

/// The router of `/api`, `/healthz`, `/readyz` and `/metrics`.
pub fn router(state: ApiState) -> Router {
    let add = |router: Router<ApiState>,
               (path, methods): (&'static str, MethodRouter<ApiState>)| {
        router.route(path, methods)
    };
    let documents = documents()
        .into_iter()
        .fold(Router::new(), add)
        .layer(CompressionLayer::new());
    let unknown = any(problem::no_such_route);
    let router = raw()
        .into_iter()
        .fold(Router::new(), add)
        .merge(documents)
        .route("/api", unknown.clone())
        .route("/api/", unknown.clone())
        .route("/api/{*rest}", unknown)
        .layer(middleware::from_fn(limits::limited))
        .layer(middleware::map_response(problem::as_problem))
        .layer(middleware::map_response(guard::private));
    guarded(router, state.hosts.clone()).with_state(state)
}

//! The same JSON as the real API, from the made-up ledger, and a stream that can be cut.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, Query},
    http::StatusCode,
    response::{IntoResponse, Response, Sse, sse::Event},
    routing::{get, post},
};
use fencepost::web;
use fencepost_dashboard::source::Source;
use fencepost_views::{Problem, ResourceFilter};
use serde::Deserialize;

use crate::ledger::Ledger;

#[derive(Deserialize)]
struct Range {
    range: u32,
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
}

#[derive(Deserialize)]
struct Pair {
    from: i64,
    to: i64,
}

type Asked<T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>;

async fn answer<T: serde::Serialize>(asked: Asked<T>) -> Response {
    match asked.await {
        Ok(value) => Json(value).into_response(),
        Err(problem) => {
            let status =
                StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Json(problem)).into_response()
        }
    }
}

/// Hands the ledger to a question and makes its answer an HTTP one.
macro_rules! ask {
    ($ledger:ident, |$source:ident $(, $pattern:pat_param => $kind:ty)*| $question:expr) => {{
        let ledger = Arc::clone(&$ledger);
        get(move |$($pattern: $kind),*| {
            let $source = Arc::clone(&ledger);
            answer(Box::pin(async move { $question.await }))
        })
    }};
}

pub fn router(ledger: Arc<Ledger>) -> Router {
    let cut = Arc::new(AtomicBool::new(false));
    let set = |value: bool| {
        let cut = Arc::clone(&cut);
        post(move || async move { cut.store(value, Ordering::Relaxed) })
    };
    Router::new()
        .route("/api/v1/overview", ask!(ledger, |source, Query(query) => Query<Range>| source.overview(query.range)))
        .route("/api/v1/series", ask!(ledger, |source, Query(query) => Query<Range>| source.series(query.range)))
        .route("/api/v1/resources", ask!(ledger, |source, Query(filter) => Query<ResourceFilter>| source.resources(filter)))
        .route("/api/v1/resources/{id}", ask!(ledger, |source, Path(id) => Path<String>| source.resource(id)))
        .route(
            "/api/v1/resources/{id}/versions",
            ask!(ledger, |source, Path(id) => Path<String>, Query(query) => Query<After>| source.versions(id, query.after)),
        )
        .route(
            "/api/v1/resources/{id}/receipts",
            ask!(ledger, |source, Path(id) => Path<String>, Query(query) => Query<After>| source.receipts(id, query.after)),
        )
        .route(
            "/api/v1/resources/{id}/timeline",
            ask!(ledger, |source, Path(id) => Path<String>, Query(query) => Query<Range>| source.timeline(id, query.range)),
        )
        .route(
            "/api/v1/resources/{id}/versions/{ordinal}/text",
            ask!(ledger, |source, Path((id, ordinal)) => Path<(String, i64)>| source.version_text(id, ordinal)),
        )
        .route(
            "/api/v1/resources/{id}/supersede",
            ask!(ledger, |source, Path(id) => Path<String>, Query(pair) => Query<Pair>| source.supersede(id, pair.from, pair.to)),
        )
        .route("/api/v1/servers", ask!(ledger, |source| source.servers()))
        .route("/api/v1/watches", ask!(ledger, |source| source.watches()))
        .route("/api/v1/indexes", ask!(ledger, |source| source.indexes()))
        .route("/preview/cut", set(true))
        .route("/preview/restore", set(false))
        .route("/api/v1/events", get(move || events(Arc::clone(&cut))))
        .merge(web::router(ledger))
}

/// A resource moves every second, samples every five; the stream ends when it is cut.
async fn events(cut: Arc<AtomicBool>) -> Response {
    if cut.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let beats = futures::stream::unfold((0_u64, cut), |(beat, cut)| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if cut.load(Ordering::Relaxed) {
            return None;
        }
        let event = if beat % 5 == 4 {
            Event::default()
                .event("sample")
                .data(r#"{"kind":"sample"}"#)
        } else {
            Event::default()
                .event("resource")
                .data(r#"{"kind":"resource","id":"limits"}"#)
        };
        Some((Ok::<_, Infallible>(event), (beat + 1, cut)))
    });
    Sse::new(beats).into_response()
}

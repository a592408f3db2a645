//! Readiness: what is still missing before this replica does what it is for.

use std::{future::Future, pin::Pin};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ApiState, parameters::Parameters, problem::ApiError};

/// One thing that is not there yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Missing {
    /// A stable word: `database`, `migrations`, `manifests`, `server agents/config-service`.
    pub name: String,
    /// What is waited for, and what to do if it does not come by itself.
    pub detail: String,
}

/// The composition root knows what has to be there.
pub trait ReadinessChecks: Send + Sync + 'static {
    /// What is missing now; nothing when ready. Must not take longer than a probe waits.
    fn missing(&self) -> Pin<Box<dyn Future<Output = Vec<Missing>> + Send + '_>>;

    /// What does not work although this replica serves what it has. It stays ready: another one is no better.
    fn degraded(&self) -> Vec<Missing> {
        Vec::new()
    }
}

/// The answer of `/readyz`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Readiness {
    ready: bool,
    missing: Vec<Missing>,
    /// What does not work although this replica serves; it takes nothing from `ready`.
    degraded: Vec<Missing>,
}

/// Whether this replica is ready, and what is missing otherwise.
#[utoipa::path(get, path = "/readyz", tag = "process",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness, description = "Names what is missing")))]
pub(super) async fn answer(
    State(state): State<ApiState>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    parameters.end()?;
    let missing = state.readiness.missing().await;
    let status = if missing.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Ok((
        status,
        Json(Readiness {
            ready: missing.is_empty(),
            missing,
            degraded: state.readiness.degraded(),
        }),
    )
        .into_response())
}

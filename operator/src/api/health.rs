//! Liveness and metrics: about this process, never about the ledger's content.

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use prometheus::TEXT_FORMAT;

use super::{ApiState, parameters::Parameters, problem::ApiError};

/// The process runs. It says nothing of the database: restarting would not bring that back.
#[utoipa::path(get, path = "/healthz", tag = "process", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn alive(parameters: Parameters) -> Result<&'static str, ApiError> {
    parameters.end()?;
    Ok("ok\n")
}

/// The metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "process", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn metrics(
    State(state): State<ApiState>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    parameters.end()?;
    let text = state
        .metrics
        .render()
        .map_err(|error| ApiError::unwritable(&error))?;
    Ok(([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response())
}

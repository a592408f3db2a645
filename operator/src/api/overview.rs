//! The first screen: objectives, what is wrong now, and the charts' series.

use axum::{Json, extract::State};
use fencepost_views::{Overview, Series};

use super::{
    ApiState,
    openapi::{RangeParams, Refusals},
    parameters::Parameters,
    problem::ApiError,
};

/// The window when none is given.
const DEFAULT_RANGE_SECONDS: i64 = 3600;

/// Objectives over a window that ends now, what is wrong at this moment, and a row for each server.
#[utoipa::path(get, path = "/api/v1/overview", tag = "overview", params(RangeParams),
    responses((status = 200, body = Overview), Refusals))]
pub(super) async fn overview(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Overview>, ApiError> {
    let range = parameters.range(DEFAULT_RANGE_SECONDS)?;
    parameters.end()?;
    Ok(Json(state.queries.overview(range).await?))
}

/// The samples of a window that ends now, over all replicas, folded to at most 240 points.
#[utoipa::path(get, path = "/api/v1/series", tag = "overview", params(RangeParams),
    responses((status = 200, body = Series), Refusals))]
pub(super) async fn series(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Series>, ApiError> {
    let range = parameters.range(DEFAULT_RANGE_SECONDS)?;
    parameters.end()?;
    Ok(Json(state.queries.series(range).await?))
}

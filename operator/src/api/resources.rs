//! Resources: searched, filtered and paged, or one with its conditions.

use axum::{
    Json,
    extract::{Path, State},
};
use fencepost_views::{Page, Resource, ResourceDetail, ResourceFilter};

use super::{
    ApiState,
    openapi::{OfResource, Refusals, Unknown},
    parameters::{Parameters, resource_id},
    problem::ApiError,
};

/// Resources in the order of their URIs. What is given must all hold.
#[utoipa::path(get, path = "/api/v1/resources", tag = "resources", params(ResourceFilter),
    responses((status = 200, body = Page<Resource>), Refusals))]
pub(super) async fn list(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Page<Resource>>, ApiError> {
    let filter = ResourceFilter {
        state: parameters.text("state"),
        server: parameters.text("server"),
        subject: parameters.text("subject"),
        watch: parameters.text("watch"),
        stale: parameters.parsed("stale", "true or false")?,
        q: parameters.text("q"),
        limit: parameters.limit()?,
        after: parameters.text("after"),
    };
    parameters.end()?;
    Ok(Json(state.queries.resources(&filter).await?))
}

/// One resource with everything that is abnormal about it.
#[utoipa::path(get, path = "/api/v1/resources/{id}", tag = "resources", params(OfResource),
    responses((status = 200, body = ResourceDetail), Refusals, Unknown))]
pub(super) async fn one(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    parameters: Parameters,
) -> Result<Json<ResourceDetail>, ApiError> {
    parameters.end()?;
    state.resource(&id).await.map(Json)
}

impl ApiState {
    pub(super) async fn resource(&self, id: &str) -> Result<ResourceDetail, ApiError> {
        self.queries
            .resource(resource_id(id)?)
            .await?
            .ok_or_else(|| ApiError::no_such_resource(id))
    }
}

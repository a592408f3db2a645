//! The declared objects: servers, subjects, watches and indexes, each a page by name.

use axum::{Json, extract::State};
use fencepost_store::queries::PageSize;
use fencepost_views::{Index, Page, Server, Subject, Watch};

use super::{
    ApiState,
    openapi::{PageParams, Refusals},
    parameters::Parameters,
    problem::ApiError,
};

/// Servers: era, capabilities, sessions, resources by state, the read load the manifests cause.
#[utoipa::path(get, path = "/api/v1/servers", tag = "objects", params(PageParams),
    responses((status = 200, body = Page<Server>), Refusals))]
pub(super) async fn servers(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Page<Server>>, ApiError> {
    let (size, after) = (parameters.page_size()?, parameters.text("after"));
    parameters.end()?;
    state.servers(size, after.as_deref()).await.map(Json)
}

/// Subjects: epoch, whether the permission holds, when last used.
#[utoipa::path(get, path = "/api/v1/subjects", tag = "objects", params(PageParams),
    responses((status = 200, body = Page<Subject>), Refusals))]
pub(super) async fn subjects(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Page<Subject>>, ApiError> {
    let (size, after) = (parameters.page_size()?, parameters.text("after"));
    parameters.end()?;
    Ok(Json(state.queries.subjects(size, after.as_deref()).await?))
}

/// Watches: what each declares, its resources by state, the share that has converged.
#[utoipa::path(get, path = "/api/v1/watches", tag = "objects", params(PageParams),
    responses((status = 200, body = Page<Watch>), Refusals))]
pub(super) async fn watches(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Page<Watch>>, ApiError> {
    let (size, after) = (parameters.page_size()?, parameters.text("after"));
    parameters.end()?;
    Ok(Json(state.queries.watches(size, after.as_deref()).await?))
}

/// Derived indexes: positions, lag, the last error and when it is tried again.
#[utoipa::path(get, path = "/api/v1/indexes", tag = "objects", params(PageParams),
    responses((status = 200, body = Page<Index>), Refusals))]
pub(super) async fn indexes(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Page<Index>>, ApiError> {
    let (size, after) = (parameters.page_size()?, parameters.text("after"));
    parameters.end()?;
    Ok(Json(state.queries.indexes(size, after.as_deref()).await?))
}

impl ApiState {
    /// The ledger's servers with the load that the manifests cause.
    pub(super) async fn servers(
        &self,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Server>, ApiError> {
        let mut page = self.queries.servers(size, after).await?;
        let loads = self.reads_per_hour.load();
        for server in &mut page.items {
            let name = (server.namespace.clone(), server.name.clone());
            server.reads_per_hour = loads.get(&name).copied().unwrap_or_default();
        }
        Ok(page)
    }
}

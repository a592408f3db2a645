//! What became of a resource: versions, receipts, the picture of its reads, and what changed between
//! two versions.

use axum::{
    Json,
    extract::{Path, State},
};
use chrono::TimeDelta;
use fencepost_store::queries::{PageSize, SupersedeAnswer, TextAnswer};
use fencepost_views::{ContentText, Page, Receipt, Supersede, Timeline, Version};

use super::{
    ApiState,
    openapi::{
        Compared, OfResource, OfVersion, PageParams, RangeParams, Refusals, Unknown, Withheld,
    },
    parameters::{Parameters, resource_id},
    problem::ApiError,
};

/// The picture's window when none is given.
const DEFAULT_PICTURE_SECONDS: i64 = 3600;

const ORDINAL: &str = "the ordinal of a version";

/// Accepted versions (`resourceVersion.v1`), newest first. Digests only; readable after a revocation.
#[utoipa::path(get, path = "/api/v1/resources/{id}/versions", tag = "resources", params(OfResource, PageParams),
    responses((status = 200, body = Page<Version>), Refusals, Unknown))]
pub(super) async fn versions(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    mut parameters: Parameters,
) -> Result<Json<Page<Version>>, ApiError> {
    let (size, after) = (parameters.page_size()?, parameters.text("after"));
    parameters.end()?;
    state.versions(&id, size, after.as_deref()).await.map(Json)
}

/// Receipts of reads, newest first; those in flight have no outcome yet.
#[utoipa::path(get, path = "/api/v1/resources/{id}/receipts", tag = "resources", params(OfResource, PageParams),
    responses((status = 200, body = Page<Receipt>), Refusals, Unknown))]
pub(super) async fn receipts(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    mut parameters: Parameters,
) -> Result<Json<Page<Receipt>>, ApiError> {
    let (size, after) = (parameters.page_size()?, parameters.text("after"));
    parameters.end()?;
    state.receipts(&id, size, after.as_deref()).await.map(Json)
}

/// Reads, marks and the watermark of a window that ends now: the newest 500 of each.
#[utoipa::path(get, path = "/api/v1/resources/{id}/timeline", tag = "resources", params(OfResource, RangeParams),
    responses((status = 200, body = Timeline), Refusals, Unknown))]
pub(super) async fn timeline(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    mut parameters: Parameters,
) -> Result<Json<Timeline>, ApiError> {
    let range = parameters.range(DEFAULT_PICTURE_SECONDS)?;
    parameters.end()?;
    state.timeline(&id, range).await.map(Json)
}

/// A stored version as text, at most 256 KiB, for a diff.
#[utoipa::path(get, path = "/api/v1/resources/{id}/versions/{ordinal}/text", tag = "resources", params(OfVersion),
    responses((status = 200, body = ContentText), Refusals, Unknown, Withheld))]
pub(super) async fn version_text(
    State(state): State<ApiState>,
    Path((id, ordinal)): Path<(String, String)>,
    parameters: Parameters,
) -> Result<Json<ContentText>, ApiError> {
    parameters.end()?;
    // What is no number is the ordinal of no version.
    let known = ordinal
        .parse()
        .map_err(|_| ApiError::no_such_version(&id, &ordinal))?;
    state.version_text(&id, known).await.map(Json)
}

/// What changed from one stored version to another; `null` when they are not text, or too large.
#[utoipa::path(get, path = "/api/v1/resources/{id}/supersede", tag = "resources", params(OfResource, Compared),
    responses((status = 200, body = Option<Supersede>), Refusals, Unknown, Withheld))]
pub(super) async fn supersede(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    mut parameters: Parameters,
) -> Result<Json<Option<Supersede>>, ApiError> {
    let (from, to) = (
        parameters.required("from", ORDINAL)?,
        parameters.required("to", ORDINAL)?,
    );
    parameters.end()?;
    state.supersede(&id, from, to).await.map(Json)
}

impl ApiState {
    pub(super) async fn versions(
        &self,
        id: &str,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Version>, ApiError> {
        let page = self.queries.versions(resource_id(id)?, size, after).await?;
        page.ok_or_else(|| ApiError::no_such_resource(id))
    }

    pub(super) async fn receipts(
        &self,
        id: &str,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Receipt>, ApiError> {
        let page = self.queries.receipts(resource_id(id)?, size, after).await?;
        page.ok_or_else(|| ApiError::no_such_resource(id))
    }

    pub(super) async fn timeline(&self, id: &str, range: TimeDelta) -> Result<Timeline, ApiError> {
        let timeline = self.queries.timeline(resource_id(id)?, range).await?;
        timeline.ok_or_else(|| ApiError::no_such_resource(id))
    }

    pub(super) async fn version_text(
        &self,
        id: &str,
        ordinal: i64,
    ) -> Result<ContentText, ApiError> {
        match self.queries.version_text(resource_id(id)?, ordinal).await? {
            TextAnswer::Text(text) => Ok(text),
            TextAnswer::Revoked => Err(ApiError::revoked(id)),
            TextAnswer::NotKept => Err(ApiError::version_not_kept(id, ordinal)),
            TextAnswer::NoSuchVersion => Err(ApiError::no_such_version(id, ordinal)),
            TextAnswer::NoSuchResource => Err(ApiError::no_such_resource(id)),
        }
    }

    pub(super) async fn supersede(
        &self,
        id: &str,
        from: i64,
        to: i64,
    ) -> Result<Option<Supersede>, ApiError> {
        match self.queries.supersede(resource_id(id)?, from, to).await? {
            SupersedeAnswer::Note(note) => Ok(note),
            SupersedeAnswer::Revoked => Err(ApiError::revoked(id)),
            SupersedeAnswer::NotKept(ordinal) => Err(ApiError::version_not_kept(id, ordinal)),
            SupersedeAnswer::NoSuchVersion(ordinal) => Err(ApiError::no_such_version(id, ordinal)),
            SupersedeAnswer::NoSuchResource => Err(ApiError::no_such_resource(id)),
        }
    }
}

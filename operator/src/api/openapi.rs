//! The `OpenAPI` document: gathered from the handlers, so that it cannot speak of others.

use axum::Json;
use fencepost_views::Problem;
use utoipa::{IntoParams, IntoResponses, OpenApi, openapi};

use super::{
    content, events, health, history, lists, outbox, overview, parameters::Parameters,
    problem::ApiError, readiness, resources,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Fencepost",
        description = "Which version of which MCP resource was accepted, when, by which read, on whose authority, and who \
                       has been told. Read-only. Errors are RFC 9457 problem documents; a parameter that an endpoint does \
                       not have is refused.",
        license(name = "Apache-2.0")
    ),
    paths(
        answer,
        lists::servers,
        lists::subjects,
        lists::watches,
        lists::indexes,
        resources::list,
        resources::one,
        content::content,
        history::versions,
        history::version_text,
        history::receipts,
        history::timeline,
        history::supersede,
        outbox::list,
        overview::overview,
        overview::series,
        events::stream,
        health::alive,
        health::metrics,
        readiness::answer,
    )
)]
struct Document;

/// The document of everything that the router answers.
pub fn document() -> openapi::OpenApi {
    Document::openapi()
}

/// This document.
#[utoipa::path(get, path = "/api/openapi.json", tag = "process", responses((status = 200, body = serde_json::Value)))]
pub(super) async fn answer(parameters: Parameters) -> Result<Json<openapi::OpenApi>, ApiError> {
    parameters.end()?;
    Ok(Json(document()))
}

/// Parameters of every page.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct PageParams {
    /// Items a page; default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// A window that ends now.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct RangeParams {
    /// Seconds, or a number with s, m, h or d: `3600`, `15m`, `7d`. At most 7 days; default `1h`.
    #[param(example = "1h")]
    range: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct OfResource {
    /// Id of the resource.
    id: uuid::Uuid,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct OfVersion {
    /// Id of the resource.
    id: uuid::Uuid,
    /// Ordinal of the read that brought the version.
    ordinal: i64,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct Compared {
    /// Ordinal of the older version.
    from: i64,
    /// Ordinal of the newer version.
    to: i64,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct FreshParam {
    /// `required`: 412 instead of content that is past its bound.
    fresh: Option<String>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes parameters; they are read by name")]
pub(super) struct OutboxParams {
    /// Position of the last event that the consumer has; default 0.
    after: Option<u64>,
    /// Events a page; default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Namespace of the server.
    namespace: Option<String>,
    /// `namespace/name` of an `MCPServer`.
    server: Option<String>,
    /// `namespace/name` of a `WatchedResource`.
    watch: Option<String>,
    /// `resource.accepted`, `resource.tombstoned`, `subject.revoked` or `catalog.published`.
    kind: Option<String>,
}

/// What every endpoint may answer instead.
#[derive(IntoResponses)]
#[allow(
    dead_code,
    reason = "describes responses; they are made by the error boundary"
)]
pub(super) enum Refusals {
    /// A parameter is unknown or cannot be meant; `field` names it.
    #[response(status = 400, content_type = "application/problem+json")]
    BadParameter(Problem),
    /// The database is away or too slow; `Retry-After` says when to try again.
    #[response(status = 503, content_type = "application/problem+json")]
    Away(Problem),
}

#[derive(IntoResponses)]
#[allow(
    dead_code,
    reason = "describes responses; they are made by the error boundary"
)]
pub(super) enum Unknown {
    /// No such resource or version, or its content is not stored.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
}

#[derive(IntoResponses)]
#[allow(
    dead_code,
    reason = "describes responses; they are made by the error boundary"
)]
pub(super) enum Withheld {
    /// The subject's permission was withdrawn.
    #[response(status = 403, content_type = "application/problem+json")]
    Revoked(Problem),
}

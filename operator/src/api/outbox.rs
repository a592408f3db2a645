//! The outbox for consumers that pull: the events of the webhooks, in their order.

use axum::{Json, extract::State};
use fencepost_store::OutboxFilter;
use fencepost_views::{OutboxEvent, Page};

use super::{
    ApiState,
    openapi::{OutboxParams, Refusals},
    parameters::Parameters,
    problem::ApiError,
};

/// Kinds that an event can have.
const KINDS: [&str; 4] = [
    "resource.accepted",
    "resource.tombstoned",
    "subject.revoked",
    "catalog.published",
];

/// Events after a position, oldest first. Keep the `data.position` of the last one and ask on from
/// there; apply only what is newer by `(epoch, generation, ordinal)`.
#[utoipa::path(get, path = "/api/v1/outbox", tag = "outbox", params(OutboxParams),
    responses((status = 200, body = Page<OutboxEvent>), Refusals))]
pub(super) async fn list(
    State(state): State<ApiState>,
    mut parameters: Parameters,
) -> Result<Json<Page<OutboxEvent>>, ApiError> {
    let after: Option<u64> =
        parameters.parsed("after", "a position: 0, or the data.position of an event")?;
    let after = i64::try_from(after.unwrap_or_default())
        .map_err(|_| ApiError::bad_parameter("after", "after is beyond every position."))?;
    let size = parameters.page_size()?;
    let filter = OutboxFilter {
        namespace: parameters.text("namespace"),
        server: object_name(&mut parameters, "server")?,
        watch: object_name(&mut parameters, "watch")?,
        kind: kind(&mut parameters)?,
    };
    parameters.end()?;
    let page = state.store.outbox_after(after, size.get(), &filter).await?;
    Ok(Json(Page {
        items: page.events,
        next: page.more.then(|| page.through.to_string()),
    }))
}

fn object_name(parameters: &mut Parameters, field: &str) -> Result<Option<String>, ApiError> {
    let name = parameters.text(field);
    match &name {
        Some(text) if text.split('/').filter(|part| !part.is_empty()).count() != 2 => Err(
            ApiError::bad_parameter(field, format!("{field} must be written namespace/name.")),
        ),
        _ => Ok(name),
    }
}

fn kind(parameters: &mut Parameters) -> Result<Option<String>, ApiError> {
    let kind = parameters.text("kind");
    match &kind {
        Some(text) if !KINDS.contains(&text.strip_prefix("dev.fencepost.").unwrap_or(text)) => Err(
            ApiError::bad_parameter("kind", format!("kind must be one of {}.", KINDS.join(", "))),
        ),
        _ => Ok(kind),
    }
}

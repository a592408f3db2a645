//! The outbox event: `CloudEvents` 1.0 JSON, the same for the webhook body and the pull endpoint.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// `GET /api/v1/outbox` item and webhook body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutboxEvent {
    pub specversion: String,
    pub id: String,
    /// `/namespace/server`.
    pub source: String,
    /// `dev.fencepost.resource.accepted`, `dev.fencepost.resource.tombstoned`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// The resource's URI.
    pub subject: String,
    pub time: DateTime<Utc>,
    pub datacontenttype: String,
    pub data: EventData,
}

/// What changed. A receiver compares `(epoch, generation, ordinal)` and applies only what is newer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventData {
    pub position: i64,
    pub epoch: i64,
    pub server: String,
    pub namespace: String,
    pub subject: String,
    pub uri: String,
    pub generation: i64,
    pub ordinal: i64,
    pub digest: Option<String>,
    pub previous_digest: Option<String>,
    pub mime_type: Option<String>,
    /// The text, when the index asked with `includeContent`.
    pub content: Option<String>,
    pub supersede: Option<Supersede>,
    /// Tombstones only: `ReadsOnly` or `Listings`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub basis: Option<String>,
}

/// What was true, what is true now: text that a host can put into a running conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Supersede {
    pub text: String,
    pub changes: Vec<Change>,
}

/// One difference, by JSON pointer (`/max_batch`) or by line (`line 12`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    pub path: String,
    pub old: Option<serde_json::Value>,
    pub new: Option<serde_json::Value>,
}

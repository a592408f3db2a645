//! A watched resource, its accepted versions, its receipts, and the picture of its reads.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Condition, NameRef, ObjectRef};

/// `GET /api/v1/resources` item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub id: String,
    pub uri: String,
    pub server: ObjectRef,
    pub subject: ObjectRef,
    pub watches: Vec<NameRef>,
    /// DISCOVERED, SUBSCRIBING, ACTIVE, UNSUBSCRIBING, CLOSED, `UNSUBSCRIBE_UNKNOWN`,
    /// `TOMBSTONE_PENDING`, TOMBSTONED, REVOKED, `RECONCILIATION_REQUIRED`.
    pub state: String,
    /// IDLE, `UPDATE_SEEN`, `READ_PENDING`: where an ACTIVE resource stands.
    pub refresh: String,
    /// How refresh is driven in fact: Subscribe or Poll.
    pub mode: String,
    /// Whether the rollout's cohort contains the resource.
    pub cohort: bool,
    pub generation: i64,
    pub issued_ordinal: i64,
    /// The watermark: the last accepted ordinal.
    pub ordinal: i64,
    pub digest: Option<String>,
    pub mime_type: Option<String>,
    /// Bytes of the accepted content.
    pub size: Option<i64>,
    pub accepted_at: Option<DateTime<Utc>>,
    /// When a read last showed that the accepted content is current (accepted or unchanged).
    pub confirmed_at: Option<DateTime<Utc>>,
    /// `confirmedAt` plus the watch's `maxStaleness`.
    pub stale_after: Option<DateTime<Utc>>,
    pub stale: bool,
    /// Why it is stale or not ACTIVE: a stable upper-case word.
    pub reason: Option<String>,
}

/// `GET /api/v1/resources/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceDetail {
    #[serde(flatten)]
    pub resource: Resource,
    pub max_staleness_seconds: f64,
    /// Seconds between polls when `mode` is Poll, between audit reads otherwise.
    pub read_interval_seconds: f64,
    pub stores_content: bool,
    pub close_ordinal: Option<i64>,
    pub session_generation: Option<i64>,
    pub conditions: Vec<Condition>,
}

/// Parameters of `GET /api/v1/resources`. What is given must all hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ResourceFilter {
    /// A state word, such as ACTIVE.
    pub state: Option<String>,
    /// `namespace/name` of an `MCPServer`.
    pub server: Option<String>,
    /// `namespace/name` of an `MCPSubject`.
    pub subject: Option<String>,
    /// `namespace/name` of a `WatchedResource`.
    pub watch: Option<String>,
    /// Only stale (true) or only fresh (false).
    pub stale: Option<bool>,
    /// Text the URI contains, upper and lower case alike.
    pub q: Option<String>,
    /// Items a page, 1 to 500; default 50.
    pub limit: Option<u32>,
    /// The `next` of the page before.
    pub after: Option<String>,
}

/// `GET /api/v1/resources/{id}/versions` item (`resourceVersion.v1`), newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub generation: i64,
    pub ordinal: i64,
    pub digest: String,
    pub previous_digest: Option<String>,
    pub mime_type: Option<String>,
    pub size: i64,
    pub accepted_at: DateTime<Utc>,
    pub trigger: String,
    /// `name/version` as the server called itself in the session's handshake.
    pub server_version: String,
    pub subject: String,
    /// Whether the bytes are still kept (`content.store`, `content.keepVersions`).
    pub content_kept: bool,
}

/// `GET /api/v1/resources/{id}/receipts` item, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub request_id: String,
    pub generation: i64,
    pub ordinal: i64,
    /// Baseline, Notification, Poll, Audit, Gap, Manual, `TombstoneCheck`.
    pub trigger: String,
    pub issued_at: DateTime<Utc>,
    /// Absent while the read is in flight.
    pub finished_at: Option<DateTime<Utc>>,
    /// accepted, unchanged, stale, `not_found`, refused, failed; absent while in flight.
    pub outcome: Option<String>,
    pub reason: Option<String>,
    /// What the server or the transport said, clipped; never a secret, never content.
    pub detail: Option<String>,
    pub digest: Option<String>,
}

/// A notification, close or gap: a mark in the picture of reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    pub at: DateTime<Utc>,
    /// `notification`, `gap`, `opened`, `closed`, `tombstoned`.
    pub kind: String,
    pub generation: i64,
    pub detail: Option<String>,
}

/// `GET /api/v1/resources/{id}/timeline?from=&to=`: reads as bars, the watermark as a step line, marks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Timeline {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    /// Oldest first, at most 500 (the newest of the range).
    pub reads: Vec<Receipt>,
    pub marks: Vec<Mark>,
    /// Watermark at `from`.
    pub watermark_before: i64,
    pub truncated: bool,
}

/// `GET /api/v1/resources/{id}/versions/{ordinal}/text`: stored content as text, for a diff. Bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContentText {
    pub ordinal: i64,
    pub digest: String,
    pub mime_type: Option<String>,
    /// Absent when the content is not UTF-8 text; the size then says how large the blob is.
    pub text: Option<String>,
    pub size: i64,
    /// The text was cut at 256 KiB.
    pub truncated: bool,
}

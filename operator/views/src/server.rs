//! Servers, their sessions, and subjects.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Condition, ObjectRef, StateCount};

/// `GET /api/v1/servers` item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The declared address: a URL without credentials, or `stdio: <command>`.
    pub address: String,
    /// Auto, Legacy or Modern, as declared.
    pub protocol: String,
    /// legacy or modern, once found.
    pub era: Option<String>,
    pub protocol_version: Option<String>,
    pub server_name: Option<String>,
    pub server_version: Option<String>,
    /// As the handshake declared them.
    pub capabilities: Option<serde_json::Value>,
    pub subscribe: Option<bool>,
    pub ready: bool,
    pub conditions: Vec<Condition>,
    pub sessions: Vec<SessionView>,
    pub resources: Vec<StateCount>,
    /// Reads an hour that the manifests cause: polling and audits.
    pub reads_per_hour: f64,
}

/// One session generation of (server, subject).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    pub subject: String,
    pub session_generation: i64,
    pub era: Option<String>,
    pub opened_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    pub close_reason: Option<String>,
    /// Digest of the capability receipt.
    pub receipt_digest: Option<String>,
}

/// `GET /api/v1/subjects` item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Authorization epoch; rises with each withdrawal.
    pub epoch: i64,
    pub revoked: bool,
    pub anonymous: bool,
    pub last_used_at: Option<DateTime<Utc>>,
    pub conditions: Vec<Condition>,
}

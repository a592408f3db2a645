//! Derived indexes: how far each consumer has been told and has confirmed.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::Condition;

/// `GET /api/v1/indexes` item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Index {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// Where it is told: scheme, host and path; no query, no credentials.
    pub url: String,
    /// Highest outbox position sent at least once.
    pub delivered_position: i64,
    /// Every event for this index up to here is confirmed.
    pub acknowledged_position: i64,
    /// The outbox's newest position.
    pub head_position: i64,
    /// Age of the oldest event that this index has not confirmed; 0 when there is none.
    pub lag_seconds: f64,
    pub pending: i64,
    /// Tries of the oldest event not confirmed.
    pub attempts: i64,
    pub last_error: Option<String>,
    pub retry_at: Option<DateTime<Utc>>,
    pub last_acknowledged_at: Option<DateTime<Utc>>,
    pub conditions: Vec<Condition>,
}

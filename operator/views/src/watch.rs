//! Watches: what a `WatchedResource` has come to.

use serde::{Deserialize, Serialize};

use crate::{Condition, NameRef};

/// How many resources are in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StateCount {
    pub state: String,
    pub count: i64,
}

/// `GET /api/v1/watches` item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub server: NameRef,
    pub subject: NameRef,
    /// Auto, Subscribe or Poll, as declared.
    pub mode: String,
    pub max_staleness_seconds: f64,
    pub poll_interval_seconds: f64,
    pub stage: String,
    pub percent: u32,
    pub suspended: bool,
    pub resources: Vec<StateCount>,
    pub stale: i64,
    /// Share of resources whose last invalidation has been answered; null without any.
    pub converged_ratio: Option<f64>,
    pub conditions: Vec<Condition>,
}

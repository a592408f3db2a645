//! The overview: objectives first, then what is wrong now, then the charts' samples.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::StateCount;

/// Whether an objective holds. `NoData` is a state of its own: it never counts as holding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ObjectiveState {
    Holds,
    Violated,
    NoData,
}

/// An objective of the design: its value now against its target, and the budget over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Objective {
    /// `fence_violations`, `converged_60s`, `read_amplification`, `index_lag`.
    pub name: String,
    pub title: String,
    /// `count`, `ratio`, `reads per version`, `seconds`.
    pub unit: String,
    pub value: Option<f64>,
    pub target: f64,
    /// True: the value must not fall below the target; false: not rise above it.
    pub at_least: bool,
    pub state: ObjectiveState,
    /// Share of the error budget left over the window, 0 to 1.
    pub budget_left: Option<f64>,
    /// Budget spent per budget earned over the last twelfth of the window; 1 spends it exactly.
    pub burn_rate: Option<f64>,
    /// How many observations the value rests on.
    pub observations: i64,
    pub points: Vec<SeriesPoint>,
}

/// A group of things that are wrong now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Attention {
    /// `servers_away`, `delivery_unproven`, `resources_stale`, `indexes_behind`, `resources_tombstoned`, ...
    pub kind: String,
    pub title: String,
    pub count: i64,
    pub since: DateTime<Utc>,
    /// A dashboard address with the filter that shows them.
    pub link: String,
    /// At most 5 names.
    pub examples: Vec<String>,
}

/// Reads a second by trigger at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadRate {
    pub trigger: String,
    pub per_second: f64,
}

/// One sample row, as kept in Postgres: what happened in the `seconds` before `at`, over all replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    pub at: DateTime<Utc>,
    pub seconds: f64,
    pub reads: Vec<ReadRate>,
    pub convergence_p50_seconds: Option<f64>,
    pub convergence_p99_seconds: Option<f64>,
    pub amplification: Option<f64>,
    pub index_lag_seconds: Option<f64>,
    pub stale_resources: Option<i64>,
    pub notifications_per_second: f64,
    pub versions_per_second: f64,
}

/// A point of a small chart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SeriesPoint {
    pub at: DateTime<Utc>,
    pub value: f64,
}

/// `GET /api/v1/series?range=1h`: samples folded to at most 240 points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Series {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    pub step_seconds: f64,
    pub samples: Vec<Sample>,
}

/// A server on the overview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerRow {
    pub namespace: String,
    pub name: String,
    pub ready: bool,
    pub era: Option<String>,
    pub sessions: i64,
    pub resources: Vec<StateCount>,
    pub stale: i64,
    pub reason: Option<String>,
}

/// `GET /api/v1/overview?range=1h`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub at: DateTime<Utc>,
    pub range_seconds: f64,
    pub objectives: Vec<Objective>,
    pub attention: Vec<Attention>,
    /// When nothing is wrong: since when.
    pub calm_since: Option<DateTime<Utc>>,
    pub servers: Vec<ServerRow>,
    pub resources: Vec<StateCount>,
    pub stale: i64,
    /// Whether manifests name anything at all (an empty ledger teaches instead).
    pub empty: bool,
}

//! The JSON shapes of the HTTP API (`docs/api.md`), shared by the API handlers and the dashboard.
//!
//! Plain data: no behaviour, no I/O, compiles to wasm. Field names are the public contract; adding
//! one is allowed, renaming or removing one is not. Times are RFC 3339 in UTC, digests are
//! `sha256:<hex>`, durations in JSON are whole or fractional seconds with the unit in the name.

mod index;
mod live;
mod outbox;
mod overview;
mod page;
mod problem;
mod resource;
mod server;
mod watch;

pub use index::Index;
pub use live::{LiveEvent, LiveKind};
pub use outbox::{Change, EventData, OutboxEvent, Supersede};
pub use overview::{
    Attention, Objective, ObjectiveState, Overview, ReadRate, Sample, Series, SeriesPoint,
    ServerRow,
};
pub use page::Page;
pub use problem::Problem;
pub use resource::{
    ContentText, Mark, Receipt, Resource, ResourceDetail, ResourceFilter, Timeline, Version,
};
pub use server::{Server, SessionView, Subject};
pub use watch::{StateCount, Watch};

use serde::{Deserialize, Serialize};

/// A Kubernetes object as other records name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ObjectRef {
    pub namespace: String,
    pub name: String,
    /// `metadata.uid`: same name with another UID is another object.
    pub uid: String,
}

/// A name within a namespace, where the UID does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NameRef {
    pub namespace: String,
    pub name: String,
}

/// A domain condition of an object; present only while it is abnormal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Condition {
    /// `DeliveryUnproven`, `ContentStale`, `SubscriptionLost`, `ServerUnavailable`, ...
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
    pub message: String,
    pub since: chrono::DateTime<chrono::Utc>,
}

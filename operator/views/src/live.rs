//! What the SSE stream `GET /api/v1/events` says: "look again", never the data itself.

use serde::{Deserialize, Serialize};

/// What kind of thing moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LiveKind {
    /// A resource's ledger rows moved; `id` is its id.
    Resource,
    /// A server's session opened or ended; `id` is `namespace/name`.
    Server,
    /// An index acknowledged or failed; `id` is `namespace/name`.
    Index,
    /// New samples for the overview's charts.
    Sample,
    /// The receiver lagged: look at everything again.
    Resync,
}

/// Body of an SSE message; the SSE `event` field carries the kind too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveEvent {
    pub kind: LiveKind,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
}

//! Errors of the API as RFC 9457 problem documents (`application/problem+json`).

use serde::{Deserialize, Serialize};

/// RFC 9457 problem document. `object` and `field` name the culprit where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A stable URI reference that names the kind of problem, such as `/problems/not-found`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    /// What happened to this request and what to do about it.
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub object: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub field: Option<String>,
}

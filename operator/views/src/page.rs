//! Keyset pages: `{"items": [...], "next": "<cursor>" | null}`.

use serde::{Deserialize, Serialize};

/// One page of a list. `next` goes into the parameter `after` of the following request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<String>,
}

//! The status of a `ResourceCatalog`: this version takes the object and does not scan.

use super::draft::Draft;

pub fn draft() -> Draft {
    Draft::stalled(
        "NotActedOn",
        "this version accepts catalogs and does not scan them; keep the object for a later version, or remove it",
    )
}

//! `resources/list` and `resources/templates/list`: one page, decoded item by item, so that a bad one is named and
//! never makes the others vanish.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::error::RequestError;
use crate::read::{check_complete, ttl};

const SNAPSHOT_ID: &str = "dev.fencepost/snapshotId";

/// One page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPage {
    pub items: Vec<ListedItem>,
    /// Opaque; `Some("")` is a cursor too.
    pub next_cursor: Option<String>,
    /// `_meta["dev.fencepost/snapshotId"]`, whether negotiated or not.
    pub snapshot_id: Option<String>,
    /// `ttlMs`: a hint.
    pub ttl: Option<Duration>,
    /// Bytes of the items as JSON, for the budget of the walk.
    pub bytes: usize,
}

/// A listed resource, or a template.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedItem {
    /// The URI as it was listed; of a template, its `uriTemplate`.
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
    /// `annotations.lastModified`, not parsed.
    pub last_modified: Option<String>,
    /// The whole item as the server sent it.
    pub descriptor: Value,
}

/// Which of the two listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    Resources,
    Templates,
}

impl Listing {
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    fn items_key(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    fn uri_key(self) -> &'static str {
        match self {
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

pub(crate) fn decode_page(listing: Listing, mut result: Value) -> Result<ListPage, RequestError> {
    check_complete(&result)?;
    let key = listing.items_key();
    let Some(Value::Array(found)) = result.get_mut(key).map(Value::take) else {
        return Err(RequestError::protocol(format!(
            "`{key}` is missing or not an array"
        )));
    };
    let next_cursor = match result.get_mut("nextCursor").map(Value::take) {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => return Err(RequestError::protocol("`nextCursor` is not a string")),
    };
    let snapshot_id = match result.get("_meta").and_then(|meta| meta.get(SNAPSHOT_ID)) {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.clone()),
        Some(_) => {
            return Err(RequestError::protocol(format!(
                "`_meta.{SNAPSHOT_ID}` is not a string"
            )));
        }
    };
    let mut bytes = 0;
    let mut items = Vec::with_capacity(found.len());
    for (n, item) in found.into_iter().enumerate() {
        bytes += item.to_string().len();
        let item = decode_item(listing, item)
            .map_err(|fault| RequestError::protocol(format!("item {}: {fault}", n + 1)))?;
        items.push(item);
    }
    Ok(ListPage {
        items,
        next_cursor,
        snapshot_id,
        ttl: ttl(&result),
        bytes,
    })
}

fn decode_item(listing: Listing, descriptor: Value) -> Result<ListedItem, String> {
    let Some(fields) = descriptor.as_object() else {
        return Err("not an object".to_owned());
    };
    let annotations = match fields.get("annotations") {
        None | Some(Value::Null) => &Map::new(),
        Some(Value::Object(map)) => map,
        Some(_) => return Err("`annotations` is not an object".to_owned()),
    };
    Ok(ListedItem {
        uri: required(fields, listing.uri_key())?,
        name: required(fields, "name")?,
        title: optional(fields, "title")?,
        description: optional(fields, "description")?,
        mime_type: optional(fields, "mimeType")?,
        size: size(fields)?,
        last_modified: optional(annotations, "lastModified")?,
        descriptor,
    })
}

fn required(fields: &Map<String, Value>, key: &str) -> Result<String, String> {
    optional(fields, key)?.ok_or_else(|| format!("`{key}` is missing"))
}

/// Null is how several servers write an absent field.
fn optional(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}

/// The schema says "number": a fraction is legal, a negative or endless one is not.
fn size(fields: &Map<String, Value>) -> Result<Option<u64>, String> {
    match fields.get("size") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => match number.as_u64() {
            Some(size) => Ok(Some(size)),
            // Past 2^53 no JSON number from JavaScript is exact, and no resource is that large.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            None => match number.as_f64() {
                Some(size) if (0.0..=9_007_199_254_740_992.0).contains(&size) => {
                    Ok(Some(size as u64))
                }
                _ => Err("`size` is not a size".to_owned()),
            },
        },
        Some(_) => Err("`size` is not a number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn fault(listing: Listing, result: Value) -> String {
        match decode_page(listing, result).unwrap_err() {
            RequestError::Protocol { detail } => detail,
            other => other.reason().to_owned(),
        }
    }

    #[test]
    fn a_bad_item_is_named_by_place_and_field() {
        let good = json!({"uri": "a", "name": "a"});
        for (bad, says) in [
            (json!({"uri": "b"}), "item 2: `name` is missing"),
            (json!({"name": "b"}), "item 2: `uri` is missing"),
            (
                json!({"uri": 5, "name": "b"}),
                "item 2: `uri` is not a string",
            ),
            (
                json!({"uri": "b", "name": "b", "mimeType": {}}),
                "item 2: `mimeType` is not a string",
            ),
            (
                json!({"uri": "b", "name": "b", "size": "1"}),
                "item 2: `size` is not a number",
            ),
            (
                json!({"uri": "b", "name": "b", "size": -1}),
                "item 2: `size` is not a size",
            ),
            (json!("b"), "item 2: not an object"),
        ] {
            assert_eq!(
                fault(Listing::Resources, json!({"resources": [good, bad]})),
                says
            );
        }
        assert_eq!(
            fault(
                Listing::Templates,
                json!({"resourceTemplates": [{"uri": "b", "name": "b"}]})
            ),
            "item 1: `uriTemplate` is missing"
        );
        assert_eq!(
            fault(Listing::Resources, json!({})),
            "`resources` is missing or not an array"
        );
        assert_eq!(
            fault(
                Listing::Resources,
                json!({"resources": [], "nextCursor": 2})
            ),
            "`nextCursor` is not a string"
        );
    }

    #[test]
    fn an_empty_cursor_is_a_cursor_and_null_is_none() {
        let page = |cursor: Value| {
            decode_page(
                Listing::Resources,
                json!({"resources": [], "nextCursor": cursor}),
            )
            .unwrap()
            .next_cursor
        };
        assert_eq!(page(json!("")), Some(String::new()));
        assert_eq!(page(Value::Null), None);
    }

    #[test]
    fn the_whole_item_and_the_snapshot_id_are_kept() {
        let item =
            json!({"uri": "not a uri", "name": "a", "size": 3.0, "mimeType": null, "x": [1]});
        let page = decode_page(
            Listing::Resources,
            json!({"resources": [item.clone()], "_meta": {SNAPSHOT_ID: "s1"}, "ttlMs": 5}),
        )
        .unwrap();
        assert_eq!(page.items[0].descriptor, item);
        assert_eq!(page.items[0].size, Some(3));
        assert_eq!(page.snapshot_id.as_deref(), Some("s1"));
        assert_eq!(page.bytes, item.to_string().len());
    }
}

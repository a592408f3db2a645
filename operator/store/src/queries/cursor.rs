//! Opaque cursors: the key of a page's last item, as base64 of JSON.
//!
//! A cursor comes back from strangers: what does not decode is a bad parameter, never a query.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};

use super::QueryError;

/// A key holds at most one URI and an id; this is far above what was ever handed out.
const MAX_CURSOR_BYTES: usize = 16 * 1024;

/// The cursor that continues behind `key`.
pub(super) fn encode<K: Serialize>(key: &K) -> Option<String> {
    serde_json::to_vec(key)
        .ok()
        .map(|json| URL_SAFE_NO_PAD.encode(json))
}

/// The key of a cursor that was handed out before.
pub(super) fn decode<K: DeserializeOwned>(cursor: Option<&str>) -> Result<Option<K>, QueryError> {
    let Some(cursor) = cursor else {
        return Ok(None);
    };
    let bad = || {
        QueryError::bad(
            "after",
            "this is no cursor of this list; take `next` of the page before, unchanged",
        )
    };
    if cursor.len() > MAX_CURSOR_BYTES {
        return Err(bad());
    }
    let json = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad())?;
    // Postgres takes no NUL in a text, and no key that we made has one.
    if json.windows(6).any(|window| window == br"\u0000") {
        return Err(bad());
    }
    serde_json::from_slice(&json).map(Some).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let key = ("docs://ä/\"'".to_owned(), 7_i64);
        let cursor = encode(&key).unwrap();
        assert_eq!(decode::<(String, i64)>(Some(&cursor)).unwrap(), Some(key));
    }

    #[test]
    fn what_is_no_cursor_names_the_parameter() {
        let nul = URL_SAFE_NO_PAD.encode(r#"["a\u0000b",1]"#);
        let other_list = encode(&5).unwrap();
        let long = "A".repeat(MAX_CURSOR_BYTES + 1);
        for cursor in [
            "",
            "%%%",
            "not a cursor",
            nul.as_str(),
            other_list.as_str(),
            long.as_str(),
        ] {
            let error = decode::<(String, i64)>(Some(cursor)).unwrap_err();
            assert!(
                matches!(error, QueryError::BadParameter { field: "after", .. }),
                "{cursor}"
            );
        }
    }
}

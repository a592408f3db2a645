//! What a server says of itself, made fit to be stored: bounded, and without what Postgres cannot hold.
//!
//! A NUL cannot be in `text` or `jsonb`; a server that sends one must not keep its session from being
//! written. Contents are bytes and stay as they are.

use serde_json::Value;

/// Longest name, version or MIME type. RFC 6838 gives the parts of a MIME type 127 characters each.
pub const MAX_WORD_CHARS: usize = 256;
/// Longest explanation kept with a receipt.
pub const MAX_DETAIL_CHARS: usize = 1000;
/// Largest declaration of capabilities; real ones take some hundred bytes.
const MAX_DECLARATION_BYTES: usize = 64 * 1024;

/// Text of at most `most` characters, NUL replaced.
pub fn text(said: &str, most: usize) -> String {
    said.chars()
        .take(most)
        .map(|c| {
            if c == '\0' {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

/// A JSON declaration; one that is too large is replaced by a word that says so.
pub fn declaration(said: &Value) -> Value {
    if said.to_string().len() > MAX_DECLARATION_BYTES {
        return serde_json::json!({ "fencepost": "left out: larger than 64 KiB" });
    }
    without_nul(said)
}

/// Recursion is bounded: the parser that made `said` goes no deeper than 128.
fn without_nul(said: &Value) -> Value {
    match said {
        Value::String(s) => Value::String(text(s, usize::MAX)),
        Value::Array(items) => items.iter().map(without_nul).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (text(key, usize::MAX), without_nul(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => said.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_postgres_cannot_hold_is_replaced_and_the_rest_stays() {
        assert_eq!(text("a\0b", 10), "a\u{fffd}b");
        assert_eq!(text("äöü", 2), "äö");
        let said = json!({"a\0": [1, "x\0", null], "b": {"c": true}});
        assert_eq!(
            declaration(&said),
            json!({"a\u{fffd}": [1, "x\u{fffd}", null], "b": {"c": true}})
        );
        let large = json!("x".repeat(MAX_DECLARATION_BYTES));
        assert!(declaration(&large).to_string().len() < 100);
    }
}

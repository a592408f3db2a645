//! `resources/read`: from a result to contents that can be believed, or an error that says what is wrong with them.

use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::error::RequestError;

/// Encoders disagree about padding; the bytes are the same.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a read brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAnswer {
    /// Never empty.
    pub contents: Vec<ContentEntry>,
    /// `ttlMs`: a hint.
    pub ttl: Option<Duration>,
    /// `annotations.lastModified` of the first entry that has one: a hint, not parsed.
    pub last_modified: Option<String>,
}

/// One entry of `contents`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentEntry {
    pub uri: String,
    pub mime_type: Option<String>,
    pub body: Body,
}

/// An entry's text, or its decoded blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    Text(String),
    Blob(Vec<u8>),
}

impl Body {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }
}

/// `limit`: decoded bytes of all entries together.
pub(crate) fn decode_read(mut result: Value, limit: usize) -> Result<ReadAnswer, RequestError> {
    check_complete(&result)?;
    let ttl = ttl(&result);
    let Some(Value::Array(entries)) = result.get_mut("contents").map(Value::take) else {
        return Err(RequestError::protocol(
            "`contents` is missing or not an array",
        ));
    };
    if entries.is_empty() {
        // 2026-07-28 forbids it as an answer for a missing resource, and it is no content either.
        return Err(RequestError::protocol("`contents` is empty"));
    }
    let mut last_modified = None;
    let mut left = limit;
    let mut contents = Vec::with_capacity(entries.len());
    for (n, entry) in entries.into_iter().enumerate() {
        if last_modified.is_none() {
            last_modified = modified(&entry);
        }
        let entry = decode_entry(entry, limit).map_err(|fault| match fault {
            EntryFault::TooLarge => RequestError::TooLarge { limit },
            EntryFault::Broken(what) => {
                RequestError::protocol(format!("contents entry {}: {what}", n + 1))
            }
        })?;
        left = left
            .checked_sub(entry.body.as_bytes().len())
            .ok_or(RequestError::TooLarge { limit })?;
        contents.push(entry);
    }
    Ok(ReadAnswer {
        contents,
        ttl,
        last_modified,
    })
}

enum EntryFault {
    TooLarge,
    Broken(&'static str),
}

fn decode_entry(entry: Value, limit: usize) -> Result<ContentEntry, EntryFault> {
    let Value::Object(mut entry) = entry else {
        return Err(EntryFault::Broken("not an object"));
    };
    let Some(Value::String(uri)) = entry.remove("uri") else {
        return Err(EntryFault::Broken("`uri` is missing or not a string"));
    };
    let mime_type = match entry.remove("mimeType") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(_) => return Err(EntryFault::Broken("`mimeType` is not a string")),
    };
    let mut part = |key| entry.remove(key).filter(|value| !value.is_null());
    let body = match (part("text"), part("blob")) {
        (Some(Value::String(text)), None) => Body::Text(text),
        (None, Some(Value::String(blob))) => {
            // Four characters are three bytes; checked before they are decoded.
            if blob.len() / 4 * 3 > limit.saturating_add(3) {
                return Err(EntryFault::TooLarge);
            }
            Body::Blob(
                BASE64
                    .decode(blob)
                    .map_err(|_| EntryFault::Broken("`blob` is not base64"))?,
            )
        }
        (Some(_), Some(_)) => return Err(EntryFault::Broken("both `text` and `blob`")),
        (None, None) => return Err(EntryFault::Broken("neither `text` nor `blob`")),
        (Some(_), None) => return Err(EntryFault::Broken("`text` is not a string")),
        (None, Some(_)) => return Err(EntryFault::Broken("`blob` is not a string")),
    };
    Ok(ContentEntry {
        uri,
        mime_type,
        body,
    })
}

fn modified(entry: &Value) -> Option<String> {
    ["annotations", "_meta"]
        .iter()
        .find_map(|at| Some(entry.get(at)?.get("lastModified")?.as_str()?.to_owned()))
}

/// No `resultType` means complete.
pub(crate) fn check_complete(result: &Value) -> Result<(), RequestError> {
    match result.get("resultType") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(kind)) if kind == "complete" => Ok(()),
        Some(Value::String(kind)) if kind == "input_required" => Err(RequestError::InputRequired),
        Some(_) => Err(RequestError::protocol("`resultType` is none that is known")),
    }
}

/// A `ttlMs` that is no whole number of milliseconds is no hint.
pub(crate) fn ttl(result: &Value) -> Option<Duration> {
    result
        .get("ttlMs")
        .and_then(Value::as_u64)
        .map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn fault(result: Value) -> String {
        match decode_read(result, 1000).unwrap_err() {
            RequestError::Protocol { detail } => detail,
            other => other.reason().to_owned(),
        }
    }

    #[test]
    fn text_and_blob_are_decoded_in_order() {
        let answer = decode_read(
            json!({"ttlMs": 1500, "contents": [
                {"uri": "a", "mimeType": "text/plain", "text": "", "annotations": {"lastModified": "2026-01-01T00:00:00Z"}},
                {"uri": "b", "blob": "AAH/"}, {"uri": "c", "blob": "AA"}]}),
            1000,
        )
        .unwrap();
        let bodies: Vec<_> = answer
            .contents
            .iter()
            .map(|entry| entry.body.clone())
            .collect();
        assert_eq!(
            bodies,
            [
                Body::Text(String::new()),
                Body::Blob(vec![0, 1, 255]),
                Body::Blob(vec![0])
            ]
        );
        assert_eq!(answer.ttl, Some(Duration::from_millis(1500)));
        assert_eq!(
            answer.last_modified.as_deref(),
            Some("2026-01-01T00:00:00Z")
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(fault(json!({"contents": []})), "`contents` is empty");
        assert_eq!(fault(json!({})), "`contents` is missing or not an array");
        assert_eq!(
            fault(
                json!({"contents": [{"uri": "a", "text": "x"}, {"uri": "a", "text": "x", "blob": "AA=="}]})
            ),
            "contents entry 2: both `text` and `blob`"
        );
        assert_eq!(
            fault(json!({"contents": [{"uri": "a"}]})),
            "contents entry 1: neither `text` nor `blob`"
        );
        assert_eq!(
            fault(json!({"contents": [{"text": "a"}]})),
            "contents entry 1: `uri` is missing or not a string"
        );
        assert_eq!(
            fault(json!({"contents": [{"uri": "a", "blob": "%"}]})),
            "contents entry 1: `blob` is not base64"
        );
        assert_eq!(
            fault(json!({"resultType": "input_required"})),
            "INPUT_REQUIRED"
        );
        assert_eq!(
            fault(json!({"resultType": "task", "contents": []})),
            "`resultType` is none that is known"
        );
    }

    #[test]
    fn the_sum_of_all_entries_is_bounded() {
        let text = "x".repeat(600);
        assert_eq!(
            fault(json!({"contents": [{"uri": "a", "text": text}, {"uri": "b", "text": text}]})),
            "TOO_LARGE"
        );
        assert_eq!(
            fault(json!({"contents": [{"uri": "a", "blob": "A".repeat(4000)}]})),
            "TOO_LARGE"
        );
    }
}

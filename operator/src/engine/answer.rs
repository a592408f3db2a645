//! What a server's answer amounts to for the ledger: content with its digest, or a typed failure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fencepost_ledger::{Body, Entry, content};
use fencepost_mcp::{ReadAnswer, RequestError};
use fencepost_store::AnswerBody;

use super::untrusted;

/// MIME type of the bytes kept for a read with several entries.
const SEVERAL_ENTRIES: &str = "application/json";

/// The answer, ready for the acceptance point.
pub struct Evaluated {
    pub body: AnswerBody,
    pub reason: Option<&'static str>,
    pub detail: Option<String>,
}

/// How a resource's answers are digested and kept.
pub struct ContentRules {
    pub store: bool,
    pub ignore_json_pointers: Vec<String>,
}

/// Evaluates a successful read.
pub fn content(answer: ReadAnswer, rules: &ContentRules, server_version: &str) -> Evaluated {
    let entries: Vec<Entry> = answer
        .contents
        .into_iter()
        .map(|entry| Entry {
            uri: entry.uri,
            mime_type: entry.mime_type,
            body: match entry.body {
                fencepost_mcp::Body::Text(text) => Body::Text(text),
                fencepost_mcp::Body::Blob(bytes) => Body::Blob(bytes),
            },
        })
        .collect();
    let digest = content::digest(&entries, &rules.ignore_json_pointers);
    let (mime_type, bytes) = kept(entries);
    Evaluated {
        body: AnswerBody::Content {
            digest,
            mime_type: mime_type.map(|mime| untrusted::text(&mime, untrusted::MAX_WORD_CHARS)),
            size: bytes.len() as u64,
            bytes: rules.store.then_some(bytes),
            server_version: server_version.to_owned(),
        },
        reason: None,
        detail: None,
    }
}

/// The bytes that stand for the resource: its one entry as it is, or several as a JSON document.
fn kept(mut entries: Vec<Entry>) -> (Option<String>, Vec<u8>) {
    if entries.len() == 1
        && let Some(entry) = entries.pop()
    {
        let bytes = match entry.body {
            Body::Text(text) => text.into_bytes(),
            Body::Blob(bytes) => bytes,
        };
        return (entry.mime_type, bytes);
    }
    let contents: Vec<serde_json::Value> = entries
        .into_iter()
        .map(|entry| {
            let (field, body) = match entry.body {
                Body::Text(text) => ("text", text),
                Body::Blob(bytes) => ("blob", STANDARD.encode(bytes)),
            };
            serde_json::json!({ "uri": entry.uri, "mimeType": entry.mime_type, field: body })
        })
        .collect();
    let document = serde_json::json!({ "contents": contents });
    (
        Some(SEVERAL_ENTRIES.to_owned()),
        document.to_string().into_bytes(),
    )
}

/// Evaluates a failed read. Nothing of it is ever stored as content.
pub fn failure(error: &RequestError) -> Evaluated {
    let body = match error {
        RequestError::NotFound { .. } => AnswerBody::NotFound,
        RequestError::Unauthorized { .. }
        | RequestError::Forbidden
        | RequestError::InputRequired
        | RequestError::TooLarge { .. }
        | RequestError::RedirectRefused { .. }
        | RequestError::AddressRefused { .. } => AnswerBody::Refused,
        RequestError::RateLimited { .. }
        | RequestError::MethodNotFound
        | RequestError::Timeout
        | RequestError::SessionLost
        | RequestError::Disconnected
        | RequestError::Protocol { .. }
        | RequestError::Server { .. }
        | RequestError::Http { .. } => AnswerBody::Failed,
    };
    Evaluated {
        body,
        reason: Some(error.reason()),
        detail: Some(untrusted::text(
            &error.to_string(),
            untrusted::MAX_DETAIL_CHARS,
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(uri: &str, body: Body) -> Entry {
        Entry {
            uri: uri.into(),
            mime_type: Some("text/plain".into()),
            body,
        }
    }

    #[test]
    fn one_entry_is_kept_as_it_is_and_several_as_a_document() {
        let (mime, bytes) = kept(vec![entry("a:1", Body::Text("x".into()))]);
        assert_eq!(
            (mime.as_deref(), &bytes[..]),
            (Some("text/plain"), &b"x"[..])
        );

        let (mime, bytes) = kept(vec![
            entry("a:1", Body::Text("x".into())),
            entry("a:2", Body::Blob(vec![0, 255])),
        ]);
        assert_eq!(mime.as_deref(), Some("application/json"));
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["contents"][0]["text"], "x");
        assert_eq!(document["contents"][1]["blob"], "AP8=");
    }
}

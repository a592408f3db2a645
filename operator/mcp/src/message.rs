//! JSON-RPC on the wire: bytes in, messages out; nothing is repaired and nothing is dropped unseen.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::config::Era;

/// A request to be sent.
pub(crate) struct Call<'a> {
    pub(crate) era: Era,
    pub(crate) method: &'static str,
    pub(crate) params: Map<String, Value>,
    /// The URI, for reads: error texts are judged without it, and modern HTTP repeats it as `Mcp-Name`.
    pub(crate) uri: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(era: Era, method: &'static str) -> Self {
        Self {
            era,
            method,
            params: Map::new(),
            uri: None,
        }
    }

    /// Names the one resource that the request is about.
    pub(crate) fn about(mut self, uri: &'a str) -> Self {
        self.params.insert("uri".into(), uri.into());
        self.uri = Some(uri);
        self
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.params.insert(key.into(), value.into());
        self
    }

    /// The request's bytes. Modern requests carry their `_meta` from [`crate::modern::request_meta`].
    pub(crate) fn encode(&self, id: u64) -> Vec<u8> {
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": self.method});
        let mut params = self.params.clone();
        if self.era == Era::Modern {
            params.insert("_meta".into(), crate::modern::request_meta());
        }
        if !params.is_empty() {
            message["params"] = Value::Object(params);
        }
        message.to_string().into_bytes()
    }
}

/// A notification's bytes.
pub(crate) fn notification(method: &str, params: Option<Value>) -> Vec<u8> {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    message.to_string().into_bytes()
}

/// Whose request an answer claims to belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerId {
    Ours(u64),
    /// Absent, null, or a word such as the Python SDK's `"server-error"`.
    Absent,
}

impl AnswerId {
    /// Some servers give a number back as text or as a float.
    pub(crate) fn read(id: Option<&Value>) -> Self {
        let number = match id {
            Some(Value::Number(n)) => n
                .as_u64()
                .or_else(|| n.to_string().strip_suffix(".0")?.parse().ok()),
            Some(Value::String(text)) => text.parse().ok(),
            _ => None,
        };
        number.map_or(Self::Absent, Self::Ours)
    }

    /// Whether an answer on the response to request `id` answers it: an error that names no request does too.
    pub(crate) fn answers(self, id: u64) -> bool {
        match self {
            Self::Ours(theirs) => theirs == id,
            Self::Absent => true,
        }
    }
}

/// A JSON-RPC error object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl RpcError {
    fn read(value: &Value) -> Self {
        Self {
            code: value
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            message: match value.get("message").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                // Bare strings as errors have been seen.
                None => value.as_str().unwrap_or_default().to_owned(),
            },
            data: value.get("data").cloned().unwrap_or_default(),
        }
    }
}

/// What an answer holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Result(Value),
    Error(RpcError),
    /// Result and error in one answer: neither can be believed.
    Both,
}

/// One message from the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Incoming {
    Answer {
        id: AnswerId,
        outcome: Outcome,
    },
    Notification {
        method: String,
        params: Value,
    },
    Request {
        id: Value,
        method: String,
    },
    /// Not a JSON-RPC message: heartbeats, log lines, broken JSON.
    Junk,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// Tells `"result": null` from no result at all.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Decodes one frame. 2025-03-26 allowed batches, so an array is the messages in it. Depth is bounded by `serde_json`
/// (128), size by whoever read the bytes.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Incoming> {
    let bytes = bytes
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(bytes)
        .trim_ascii();
    let envelopes = if bytes.first() == Some(&b'[') {
        serde_json::from_slice::<Vec<Envelope>>(bytes)
    } else {
        serde_json::from_slice::<Envelope>(bytes).map(|one| vec![one])
    };
    envelopes.map_or_else(
        |_| vec![Incoming::Junk],
        |list| list.into_iter().map(sort).collect(),
    )
}

fn sort(envelope: Envelope) -> Incoming {
    let Envelope {
        id,
        method,
        params,
        result,
        error,
    } = envelope;
    match (method, result, error) {
        (Some(method), None, None) => match id {
            Some(id) if !id.is_null() => Incoming::Request { id, method },
            _ => Incoming::Notification {
                method,
                params: params.unwrap_or_default(),
            },
        },
        (Some(_), _, _) | (None, None, None) => Incoming::Junk,
        (None, result, Some(error)) => {
            let outcome = match result {
                Some(value) if !value.is_null() => Outcome::Both,
                _ => Outcome::Error(RpcError::read(&error)),
            };
            Incoming::Answer {
                id: AnswerId::read(id.as_ref()),
                outcome,
            }
        }
        (None, Some(result), None) => Incoming::Answer {
            id: AnswerId::read(id.as_ref()),
            outcome: Outcome::Result(result),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Incoming {
        decode(text.as_bytes()).remove(0)
    }

    #[test]
    fn ids_come_back_in_several_forms() {
        for id in ["7", "\"7\"", "7.0"] {
            let Incoming::Answer { id: read, .. } = one(&format!(r#"{{"id":{id},"result":{{}}}}"#))
            else {
                unreachable!("an answer");
            };
            assert_eq!(read, AnswerId::Ours(7), "{id}");
        }
        for id in ["null", "\"server-error\""] {
            let text = format!(r#"{{"id":{id},"error":{{"code":-32000,"message":"x"}}}}"#);
            assert!(matches!(
                one(&text),
                Incoming::Answer {
                    id: AnswerId::Absent,
                    outcome: Outcome::Error(_)
                }
            ));
        }
    }

    #[test]
    fn result_with_error_is_neither() {
        let text = r#"{"id":1,"result":{"contents":[]},"error":{"code":1,"message":"x"}}"#;
        assert!(matches!(
            one(text),
            Incoming::Answer {
                outcome: Outcome::Both,
                ..
            }
        ));
        let nulls = r#"{"id":1,"result":{},"error":null}"#;
        assert!(matches!(
            one(nulls),
            Incoming::Answer {
                outcome: Outcome::Result(_),
                ..
            }
        ));
        let null_result = r#"{"id":1,"result":null}"#;
        assert!(matches!(
            one(null_result),
            Incoming::Answer {
                outcome: Outcome::Result(Value::Null),
                ..
            }
        ));
    }

    #[test]
    fn junk_is_junk() {
        for text in [
            r#"{"type":"heartbeat"}"#,
            "null",
            "listening on 3000",
            "{",
            "",
            r#"{"id":1}"#,
            "\u{fffd}",
        ] {
            assert_eq!(one(text), Incoming::Junk, "{text}");
        }
        assert_eq!(decode(b"\xff\xfe"), vec![Incoming::Junk]);
        assert_eq!(decode(&b"[".repeat(100_000)), vec![Incoming::Junk]);
    }

    #[test]
    fn a_batch_is_its_messages() {
        let both = decode(br#"[{"method":"a"},{"id":3,"result":{}}]"#);
        assert!(matches!(
            both[..],
            [Incoming::Notification { .. }, Incoming::Answer { .. }]
        ));
    }
}

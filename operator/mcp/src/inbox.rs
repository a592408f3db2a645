//! Where everything goes that is not the answer somebody waits for: to the event queue, or straight back as a reply.

use serde_json::{Value, json};

use crate::event::{EventSender, SessionEvent};
use crate::message::Incoming;

/// Longer than any URI that can be watched (1,024 characters): it names none of them, and looking for what it might be
/// below would cost the square of its length.
const MAX_URI_BYTES: usize = 8 * 1024;

/// Turns a message into an event. A request from the server yields the reply to send back at once: we offer it
/// nothing, and an old reference server waits for that word in the middle of a subscribe.
pub(crate) fn absorb(events: &EventSender, incoming: Incoming) -> Option<Vec<u8>> {
    match incoming {
        Incoming::Notification { method, params } => events.send(notified(&method, &params)),
        Incoming::Request { id, method } => {
            events.send(SessionEvent::Ignored {
                kind: "server_request",
            });
            return Some(reply(&id, &method));
        }
        Incoming::Answer { .. } => events.send(SessionEvent::Ignored {
            kind: "unsolicited_answer",
        }),
        Incoming::Junk => events.send(SessionEvent::Ignored { kind: "junk_frame" }),
    }
    None
}

fn notified(method: &str, params: &Value) -> SessionEvent {
    match method {
        "notifications/resources/updated" => match params.get("uri").and_then(Value::as_str) {
            Some(uri) if uri.len() > MAX_URI_BYTES => SessionEvent::Ignored {
                kind: "updated_uri_too_long",
            },
            Some(uri) => SessionEvent::Updated {
                uri: uri.to_owned(),
            },
            None => SessionEvent::Ignored {
                kind: "updated_without_uri",
            },
        },
        "notifications/resources/list_changed" => SessionEvent::ListChanged,
        _ => SessionEvent::Ignored {
            kind: "other_notification",
        },
    }
}

fn reply(id: &Value, method: &str) -> Vec<u8> {
    let message = if method == "ping" {
        json!({"jsonrpc": "2.0", "id": id, "result": {}})
    } else {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})
    };
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_of_an_endless_uri_is_counted_and_not_looked_up() {
        let update = |len: usize| {
            let uri = format!("x://{}", "/".repeat(len));
            notified("notifications/resources/updated", &json!({"uri": uri}))
        };
        assert!(matches!(update(4096), SessionEvent::Updated { .. }));
        assert_eq!(
            update(MAX_URI_BYTES),
            SessionEvent::Ignored {
                kind: "updated_uri_too_long"
            }
        );
    }
}

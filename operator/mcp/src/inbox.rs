//! Where everything goes that is not the answer somebody waits for: to the event queue, or straight back as a reply.

use serde_json::{Value, json};

use crate::event::{EventSender, SessionEvent};
use crate::message::Incoming;

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

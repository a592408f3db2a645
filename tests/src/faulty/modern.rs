//! The modern era: requests that stand alone, `server/discover`, `subscriptions/listen`.
//!
//! Strict where a client could be careless: the headers must say what the body says.

use std::collections::HashSet;

use axum::{http::HeaderMap, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::faulty::{
    State,
    counters::count,
    faults::{Eras, SubscribeFault},
    legacy,
    message::{self, MODERN, Message, quoted},
    read::{self, Era},
};

/// Whether a POST is of this era: its header or its body names a version without a handshake.
pub fn is_modern(headers: &HeaderMap, message: &Message<'_>) -> bool {
    let named = |version: &str| version >= MODERN;
    header(headers, "mcp-protocol-version").is_some_and(named)
        || message
            .params
            .meta
            .protocol_version
            .as_deref()
            .is_some_and(named)
}

pub async fn post(state: &State, headers: &HeaderMap, message: &Message<'_>) -> Response {
    let Some(id) = message.id.map(serde_json::value::RawValue::get) else {
        return message::empty(202);
    };
    let method = message.method.as_deref().unwrap_or_default();
    if state.faults.read(|faults| faults.eras == Eras::Legacy) {
        return message::json(
            400,
            message::error(None, -32000, "Bad Request: Server not initialized", ""),
        );
    }
    if let Some(refusal) = refused(headers, message, id) {
        return refusal;
    }
    let uri = message.params.uri.as_deref().unwrap_or_default();
    match method {
        "server/discover" => discover(state, id),
        "resources/list" => {
            read::list(state, id, message.params.cursor.as_deref(), Era::Modern).await
        }
        "resources/templates/list" => read::templates(id, Era::Modern),
        "resources/read" => read::read(state, id, uri, Era::Modern).await,
        "subscriptions/listen" => listen(state, id, message),
        _ => message::json(
            404,
            message::error(Some(id), -32601, "method not found", ""),
        ),
    }
}

/// The refusal of a request whose headers and body do not fit together.
fn refused(headers: &HeaderMap, message: &Message<'_>, id: &str) -> Option<Response> {
    let refuse = |code: i64, text: &str, data: &str| {
        Some(message::json(
            400,
            message::error(Some(id), code, text, data),
        ))
    };
    let meta = &message.params.meta;
    let Some(version) = meta.protocol_version.as_deref() else {
        return refuse(-32602, "_meta names no protocol version", "");
    };
    if meta.client_info.is_none() || meta.client_capabilities.is_none() {
        return refuse(-32602, "_meta lacks clientInfo or clientCapabilities", "");
    }
    if header(headers, "mcp-protocol-version") != Some(version) {
        return refuse(-32020, "MCP-Protocol-Version differs from the body", "");
    }
    if version != MODERN {
        let data = format!(
            r#"{{"supported":["{MODERN}"],"requested":{}}}"#,
            quoted(version)
        );
        return refuse(-32022, "unsupported protocol version", &data);
    }
    if header(headers, "mcp-method") != message.method.as_deref() {
        return refuse(-32020, "Mcp-Method differs from the body", "");
    }
    if message.method.as_deref() == Some("resources/read") && name(headers) != message.params.uri {
        return refuse(-32020, "Mcp-Name differs from the body", "");
    }
    None
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// `Mcp-Name`, decoded from its base64 form where it has that.
fn name(headers: &HeaderMap) -> Option<String> {
    let plain = header(headers, "mcp-name")?;
    match plain
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(plain.to_owned()),
    }
}

fn discover(state: &State, id: &str) -> Response {
    count(&state.counts.discovers);
    let (eras, subscribe, list_changed) = state
        .faults
        .read(|faults| (faults.eras, faults.subscribe, faults.list_changed));
    let versions = match eras {
        Eras::Modern => format!(r#"["{MODERN}"]"#),
        Eras::Both | Eras::Legacy => format!(r#"["{MODERN}","2025-11-25"]"#),
    };
    let result = format!(
        r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":{versions},"capabilities":{},"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"faulty","version":"1.0.0"}}}}}}"#,
        legacy::capabilities(subscribe, list_changed)
    );
    message::json(200, message::result(id, &result))
}

fn listen(state: &State, id: &str, message: &Message<'_>) -> Response {
    count(&state.counts.listens);
    let (subscribe, accepts) = state
        .faults
        .read(|faults| (faults.subscribe, faults.listen_accepts));
    let asked = &message.params.notifications;
    let most = match subscribe {
        SubscribeFault::MethodNotFound => {
            return message::json(
                404,
                message::error(Some(id), -32601, "method not found", ""),
            );
        }
        SubscribeFault::NotOffered => 0,
        SubscribeFault::None | SubscribeFault::AckedButSilent => accepts.unwrap_or(usize::MAX),
    };
    let accepted: Vec<String> = asked
        .resource_subscriptions
        .iter()
        .take(most)
        .cloned()
        .collect();
    let list_changed =
        asked.resources_list_changed && state.faults.read(|faults| faults.list_changed);
    let mut honoured = serde_json::Map::new();
    if list_changed {
        honoured.insert("resourcesListChanged".to_owned(), true.into());
    }
    if !accepted.is_empty() {
        honoured.insert("resourceSubscriptions".to_owned(), accepted.clone().into());
    }
    let acknowledgement = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#,
        serde_json::Value::from(honoured)
    );
    let uris: HashSet<String> = accepted.into_iter().collect();
    message::stream(
        state
            .listens
            .add(id.to_owned(), uris, list_changed, &acknowledgement),
    )
}

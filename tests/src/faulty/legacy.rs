//! The legacy era: `initialize`, sessions, subscribe and unsubscribe, the GET stream, DELETE.

use axum::response::Response;
use uuid::Uuid;

use crate::faulty::{
    State,
    counters::count,
    faults::{Eras, SessionLoss, SubscribeFault, UnsubscribeFault},
    message::{self, MODERN, Message},
    read::{self, Era},
    stream::StreamTaken,
};

/// The newest version with a handshake.
const NEWEST: &str = "2025-11-25";
const KNOWN: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST];

pub async fn post(state: &State, session: Option<&str>, message: &Message<'_>) -> Response {
    let method = message.method.as_deref().unwrap_or_default();
    let id = message.id.map(serde_json::value::RawValue::get);
    if let ("initialize", Some(id)) = (method, id) {
        return initialize(state, id, message);
    }
    let strict = state.faults.read(|faults| faults.strict_initialized);
    let Some(session) = session else {
        return message::json(
            400,
            message::error(None, -32000, "Bad Request: no session id", ""),
        );
    };
    let Some(initialized) = state.sessions.with(session, |session| session.initialized) else {
        return lost(state);
    };
    if method == "notifications/initialized" {
        if let Some(delay) = strict {
            tokio::time::sleep(delay).await;
        }
        state
            .sessions
            .with(session, |session| session.initialized = true);
        return message::empty(202);
    }
    let Some(id) = id else {
        return message::empty(202);
    };
    if strict.is_some() && !initialized {
        return message::json(
            200,
            message::error(Some(id), -32600, "not initialized yet", ""),
        );
    }
    let uri = message.params.uri.as_deref().unwrap_or_default();
    match method {
        "ping" => message::json(200, message::result(id, "{}")),
        "resources/list" => {
            read::list(state, id, message.params.cursor.as_deref(), Era::Legacy).await
        }
        "resources/templates/list" => read::templates(id, Era::Legacy),
        "resources/read" => read::read(state, id, uri, Era::Legacy).await,
        "resources/subscribe" => subscribe(state, session, id, uri).await,
        "resources/unsubscribe" => unsubscribe(state, session, id, uri).await,
        _ => message::json(
            200,
            message::error(Some(id), -32601, "method not found", ""),
        ),
    }
}

fn initialize(state: &State, id: &str, message: &Message<'_>) -> Response {
    count(&state.counts.initializes);
    let (eras, subscribe, list_changed) = state
        .faults
        .read(|faults| (faults.eras, faults.subscribe, faults.list_changed));
    if eras == Eras::Modern {
        let data = format!(r#"{{"supported":["{MODERN}"],"requested":"legacy"}}"#);
        return message::json(
            400,
            message::error(Some(id), -32022, "unsupported protocol version", &data),
        );
    }
    let asked = message
        .params
        .protocol_version
        .as_deref()
        .unwrap_or_default();
    let version = KNOWN
        .into_iter()
        .find(|known| *known == asked)
        .unwrap_or(NEWEST);
    let session = Uuid::new_v4().simple().to_string();
    state.sessions.add(session.clone());
    let result = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{},"serverInfo":{{"name":"faulty","version":"1.0.0"}}}}"#,
        capabilities(subscribe, list_changed)
    );
    message::with_header(
        message::json(200, message::result(id, &result)),
        "mcp-session-id",
        &session,
    )
}

pub fn capabilities(subscribe: SubscribeFault, list_changed: bool) -> String {
    let subscribe = if subscribe == SubscribeFault::NotOffered {
        ""
    } else {
        r#""subscribe":true,"#
    };
    format!(r#"{{"resources":{{{subscribe}"listChanged":{list_changed}}}}}"#)
}

async fn subscribe(state: &State, session: &str, id: &str, uri: &str) -> Response {
    let number = count(&state.counts.subscribes);
    let (fault, swallow) = state
        .faults
        .read(|faults| (faults.subscribe, faults.swallow_subscribe));
    if swallow == Some(number) {
        return std::future::pending().await;
    }
    match fault {
        SubscribeFault::NotOffered | SubscribeFault::MethodNotFound => message::json(
            200,
            message::error(Some(id), -32601, "method not found", ""),
        ),
        SubscribeFault::None | SubscribeFault::AckedButSilent => {
            state
                .sessions
                .with(session, |session| session.subscribed.insert(uri.to_owned()));
            message::json(200, message::result(id, "{}"))
        }
    }
}

async fn unsubscribe(state: &State, session: &str, id: &str, uri: &str) -> Response {
    count(&state.counts.unsubscribes);
    match state.faults.read(|faults| faults.unsubscribe) {
        UnsubscribeFault::NeverAnswered => return std::future::pending().await,
        UnsubscribeFault::KeepsNotifying => {}
        UnsubscribeFault::None => {
            state
                .sessions
                .with(session, |session| session.subscribed.remove(uri));
        }
    }
    message::json(200, message::result(id, "{}"))
}

pub fn get(state: &State, session: Option<&str>) -> Response {
    count(&state.counts.gets);
    if let Some(status) = state.faults.read(|faults| faults.refuse_get) {
        return message::text(status, "this stream is refused on purpose");
    }
    match session.and_then(|session| state.sessions.open_stream(session)) {
        None => lost(state),
        Some(Err(StreamTaken)) => message::text(409, "this session has a stream already"),
        Some(Ok(body)) => message::stream(body),
    }
}

pub fn delete(state: &State, session: Option<&str>) -> Response {
    if session.is_some_and(|session| state.sessions.close(session)) {
        count(&state.counts.deletes);
        return message::empty(200);
    }
    lost(state)
}

fn lost(state: &State) -> Response {
    match state.faults.read(|faults| faults.session_loss) {
        SessionLoss::NotFound => message::json(
            404,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#
                .to_owned(),
        ),
        SessionLoss::BadRequestWithoutId => message::json(
            400,
            message::error(
                None,
                -32000,
                "Bad Request: No valid session ID provided",
                "",
            ),
        ),
        SessionLoss::OkWithError => {
            message::json(200, message::error(None, -32001, "Session not found", ""))
        }
    }
}

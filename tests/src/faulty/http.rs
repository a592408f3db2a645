//! The HTTP side: one path, three methods, and the faults that come before any meaning.

use std::{sync::Arc, time::Instant};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State as Extract,
    http::{HeaderMap, Method, StatusCode, header},
    response::Response,
    routing::any,
};
use tokio::net::TcpListener;

use crate::faulty::{
    State,
    counters::count,
    legacy,
    log::Request,
    message::{self, Message},
    modern, read,
};

/// Bytes of a request: more than any client sends, small enough not to matter.
const MOST: usize = 4 * 1024 * 1024;

pub async fn serve(listener: TcpListener, state: Arc<State>) {
    let closing = state.closing.clone();
    let router = Router::new()
        .route("/mcp", any(handle))
        .layer(axum::extract::DefaultBodyLimit::max(MOST))
        .with_state(state);
    let served = axum::serve(listener, router)
        .with_graceful_shutdown(closing.cancelled_owned())
        .await;
    assert!(
        served.is_ok(),
        "the faulty server could not serve: {served:?}"
    );
}

/// A request that is held when the server ends is not waited for.
async fn handle(
    state: Extract<Arc<State>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let closing = state.closing.clone();
    let answered = closing
        .run_until_cancelled(answer(state, method, headers, body))
        .await;
    answered.unwrap_or_else(|| message::empty(503))
}

async fn answer(
    Extract(state): Extract<Arc<State>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &header::HeaderValue| value.to_str().ok())
    };
    let session = text("mcp-session-id");
    let entry = |method: &str, uri: Option<String>, modern| Request {
        at: Instant::now(),
        method: method.to_owned(),
        uri,
        session: session.map(str::to_owned),
        modern,
        authorization: text("authorization").map(str::to_owned),
    };
    if method == Method::GET || method == Method::DELETE {
        state.log.add(|| entry(method.as_str(), None, false));
        if !authorized(&state, text("authorization")) {
            return read::unauthorized();
        }
        return if method == Method::GET {
            legacy::get(&state, session)
        } else {
            legacy::delete(&state, session)
        };
    }
    if method != Method::POST {
        return message::empty(405);
    }
    count(&state.counts.posts);
    let Ok(parsed) = serde_json::from_slice::<Message<'_>>(&body) else {
        return message::json(400, message::error(None, -32700, "parse error", ""));
    };
    let is_modern = modern::is_modern(&headers, &parsed);
    state.log.add(|| {
        entry(
            parsed.method.as_deref().unwrap_or("(answer)"),
            parsed.params.uri.clone(),
            is_modern,
        )
    });
    if !authorized(&state, text("authorization")) {
        return read::unauthorized();
    }
    if let Some(status) = state.faults.read(|faults| faults.refuse_post) {
        return message::text(status, "this request is refused on purpose");
    }
    let response = if is_modern {
        modern::post(&state, &headers, &parsed).await
    } else {
        legacy::post(&state, session, &parsed).await
    };
    if state.faults.read(|faults| faults.answer_as_stream) {
        as_stream(response).await
    } else {
        response
    }
}

fn authorized(state: &State, authorization: Option<&str>) -> bool {
    state.faults.read(|faults| match &faults.bearer {
        None => true,
        Some(token) => authorization.and_then(|value| value.strip_prefix("Bearer ")) == Some(token),
    })
}

/// A successful JSON answer as the only event of a stream; all else as it is.
async fn as_stream(response: Response) -> Response {
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == "application/json");
    if response.status() != StatusCode::OK || !is_json {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => {
            parts.headers.insert(
                header::CONTENT_TYPE,
                header::HeaderValue::from_static("text/event-stream"),
            );
            parts.headers.remove(header::CONTENT_LENGTH);
            let event = message::event(&String::from_utf8_lossy(&bytes));
            Response::from_parts(parts, Body::from(event))
        }
        Err(_) => message::empty(500),
    }
}

//! Bounds on a request: how large its body may claim to be, and how long its answer may take.

use std::time::Duration;

use axum::{
    body::HttpBody as _,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::problem::ApiError;

/// No endpoint takes a body; one of this size is a client's habit, a larger one a mistake.
const MAX_BODY_BYTES: u64 = 16 * 1024;

/// Until the head of an answer is there. Readers of a dashboard would rather be told than wait.
const MAX_WAIT: Duration = Duration::from_secs(15);

pub(super) async fn limited(request: Request, next: Next) -> Response {
    if request.body().size_hint().lower() > MAX_BODY_BYTES {
        return ApiError::body_too_large(MAX_BODY_BYTES).into_response();
    }
    match tokio::time::timeout(MAX_WAIT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::too_slow(MAX_WAIT.as_secs()).into_response(),
    }
}

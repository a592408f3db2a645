//! From what a server answered to what it means: JSON-RPC errors and HTTP statuses become [`RequestError`].
//!
//! A JSON-RPC error never hides a 401, 403 or 429. Not-found is believed only where it is clear, since it may lead to
//! a tombstone; a lost session is recognised in every form that servers were seen to use.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};
use rmcp::model::ErrorCode;

use crate::config::Era;
use crate::error::RequestError;
use crate::message::{AnswerId, Call, Incoming, Outcome, RpcError, decode};

/// `Retry-After` is believed up to an hour: a server that says more is asked again all the same.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// A server's message is kept for a person to read, not as a dump.
const MAX_MESSAGE_CHARS: usize = 500;

/// 2025-11-25: the server wants the user to visit a URL first.
const URL_ELICITATION_REQUIRED: i64 = -32042;

/// A failed exchange, with what era detection needs to see besides the error.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) error: RequestError,
    pub(crate) status: Option<u16>,
    pub(crate) rpc: Option<Box<RpcError>>,
    /// Why connecting failed, without any URL.
    pub(crate) detail: Option<Box<str>>,
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self {
            error,
            status: None,
            rpc: None,
            detail: None,
        }
    }
}

/// Unwraps an answer's outcome.
pub(crate) fn settle(
    call: &Call<'_>,
    in_session: bool,
    outcome: Outcome,
) -> Result<serde_json::Value, Failure> {
    match outcome {
        Outcome::Result(value) => Ok(value),
        Outcome::Both => {
            Err(RequestError::protocol("an answer with both a result and an error").into())
        }
        Outcome::Error(rpc) => Err(Failure {
            error: meaning(call, in_session, &rpc),
            status: None,
            rpc: Some(Box::new(rpc)),
            detail: None,
        }),
    }
}

/// What a JSON-RPC error means for this call. `in_session`: a legacy session id went with the request.
fn meaning(call: &Call<'_>, in_session: bool, rpc: &RpcError) -> RequestError {
    // The URI is the server's own text and may well contain "not found".
    let text = call
        .uri
        .map_or_else(|| rpc.message.clone(), |uri| rpc.message.replace(uri, " "))
        .to_lowercase();
    let is = |code: ErrorCode| rpc.code == i64::from(code.0);
    if in_session && names_lost_session(&text) {
        return RequestError::SessionLost;
    }
    if rpc.code == 429 || text.contains("rate limit") || text.contains("too many requests") {
        return RequestError::RateLimited { retry_after: None };
    }
    if is(ErrorCode::METHOD_NOT_FOUND) {
        return RequestError::MethodNotFound;
    }
    if is(ErrorCode::RESOURCE_NOT_FOUND) {
        return RequestError::NotFound { code: rpc.code };
    }
    if rpc.code == URL_ELICITATION_REQUIRED {
        return RequestError::InputRequired;
    }
    if call.method == "resources/read" {
        let modern_code = call.era == Era::Modern && is(ErrorCode::INVALID_PARAMS);
        if modern_code || names_missing_resource(&text) {
            return RequestError::NotFound { code: rpc.code };
        }
    }
    RequestError::Server {
        code: rpc.code,
        message: clip(&rpc.message),
    }
}

/// The rule for not-found by text, on reads only, the URI taken out first: it must name a resource or a file as the
/// thing that is missing. "Not found" alone may be a host, a tool, a module or a tenant.
fn names_missing_resource(text: &str) -> bool {
    const MISSING: [&str; 5] = [
        "not found",
        "unknown",
        "does not exist",
        "no such",
        "doesn't exist",
    ];
    let text = text
        .trim_start_matches("mcp error")
        .trim_start_matches(|c: char| !c.is_alphabetic());
    let missing = MISSING.iter().any(|words| text.contains(words));
    let names_other = [
        "session", "method", "tool", "module", "host", "server", "tenant", "user",
    ]
    .iter()
    .any(|other| {
        MISSING.iter().any(|m| {
            text.contains(&format!("{other} {m}")) || text.contains(&format!("{m} {other}"))
        })
    });
    let names_it = [
        "resource",
        "uri",
        "no such file",
        "enoent",
        "file not found",
    ]
    .iter()
    .any(|words| text.contains(words));
    (missing && names_it && !names_other) || text.starts_with("enoent")
}

/// The lost-session rule, for answers without a clear status: the text speaks of the session and says what is wrong
/// with it, or says that the server was never initialized, which is how a forgotten session looks from its side.
fn names_lost_session(text: &str) -> bool {
    let about_session = text.contains("session")
        && [
            "not found",
            "no valid",
            "invalid",
            "unknown",
            "expired",
            "terminated",
            "does not exist",
            "closed",
            "missing",
        ]
        .iter()
        .any(|words| text.contains(words));
    about_session || text.contains("not initialized")
}

/// What an unsuccessful HTTP response means. `id`: the request that it answers.
pub(crate) fn refused(
    call: &Call<'_>,
    id: u64,
    in_session: bool,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Failure {
    let answer = decode(body)
        .into_iter()
        .find_map(|incoming| match incoming {
            Incoming::Answer {
                id: theirs,
                outcome: Outcome::Error(rpc),
            } if theirs.answers(id) => Some((theirs, rpc)),
            _ => None,
        });
    let named = matches!(answer, Some((AnswerId::Ours(_), _)));
    let rpc = answer.map(|(_, rpc)| rpc);
    let challenge = headers.contains_key(header::WWW_AUTHENTICATE);
    let says_lost = in_session && names_lost_session(&text_of(rpc.as_ref(), body).to_lowercase());
    let from_rpc = rpc.as_ref().map(|rpc| meaning(call, in_session, rpc));

    let error = match status.as_u16() {
        401 if challenge || !says_lost => RequestError::Unauthorized { challenge },
        403 => RequestError::Forbidden,
        429 => RequestError::RateLimited {
            retry_after: retry_after(headers),
        },
        404 if in_session && !named => RequestError::SessionLost,
        // The reference server says so with 400 and an error that names no request. Some put a fault of the request
        // itself into that form; its code tells.
        400 if in_session && !named && rpc.as_ref().is_some_and(|rpc| !blames_request(rpc)) => {
            RequestError::SessionLost
        }
        _ if says_lost => RequestError::SessionLost,
        503 if headers.contains_key(header::RETRY_AFTER) => RequestError::RateLimited {
            retry_after: retry_after(headers),
        },
        code => from_rpc.unwrap_or(RequestError::Http { status: code }),
    };
    Failure {
        error,
        status: Some(status.as_u16()),
        rpc: rpc.map(Box::new),
        detail: None,
    }
}

/// Codes that speak of this one request, not of the session.
fn blames_request(rpc: &RpcError) -> bool {
    [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::RESOURCE_NOT_FOUND,
    ]
    .iter()
    .any(|code| rpc.code == i64::from(code.0))
}

fn text_of<'a>(rpc: Option<&'a RpcError>, body: &'a [u8]) -> std::borrow::Cow<'a, str> {
    // A text body that speaks of a lost session does so at once.
    rpc.map_or_else(
        || String::from_utf8_lossy(&body[..body.len().min(1024)]),
        |rpc| rpc.message.as_str().into(),
    )
}

/// Both forms of `Retry-After`: seconds and an HTTP date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        // More digits than fit are more than an hour.
        text.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text)
            .ok()?
            .duration_since(SystemTime::now())
            .unwrap_or_default()
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

fn clip(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::Value;

    fn read_error(era: Era, code: i64, message: &str) -> RequestError {
        let call = Call::new(era, "resources/read").about("docs:///not%20found/resource");
        meaning(
            &call,
            false,
            &RpcError {
                code,
                message: message.into(),
                data: Value::Null,
            },
        )
    }

    fn status(code: u16, in_session: bool, headers: &[(&str, &str)], body: &str) -> RequestError {
        let call = Call::new(Era::Legacy, "resources/read").about("test://a");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(
                http::HeaderName::try_from(*name).unwrap(),
                value.parse().unwrap(),
            );
        }
        refused(
            &call,
            4,
            in_session,
            StatusCode::from_u16(code).unwrap(),
            &map,
            body.as_bytes(),
        )
        .error
    }

    #[test]
    fn not_found_by_code() {
        assert!(read_error(Era::Legacy, -32002, "whatever").is_not_found());
        assert!(read_error(Era::Modern, -32602, "whatever").is_not_found());
        assert!(!read_error(Era::Legacy, -32602, "bad params").is_not_found());
        let list = Call::new(Era::Modern, "resources/list");
        let bad_cursor = RpcError {
            code: -32602,
            message: "bad cursor".into(),
            data: Value::Null,
        };
        assert!(matches!(
            meaning(&list, false, &bad_cursor),
            RequestError::Server { code: -32602, .. }
        ));
    }

    #[test]
    fn not_found_by_text_must_name_the_resource() {
        for text in [
            "MCP error -32602: Resource docs:///not%20found/resource not found",
            "Unknown resource: docs:///not%20found/resource",
            "Resource does not exist",
            "ENOENT: no such file or directory, open 'x'",
            "No such file: x",
        ] {
            assert!(
                read_error(Era::Legacy, -32603, text).is_not_found(),
                "{text}"
            );
        }
        for text in [
            "not found",
            "docs:///not%20found/resource: backend timed out",
            "getaddrinfo ENOTFOUND db",
            "host not found while reading resource",
            "unknown tool resource",
            "Internal error",
            "module not found: resource.js",
            "resource temporarily unavailable",
        ] {
            assert!(
                !read_error(Era::Legacy, -32603, text).is_not_found(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_lost_session_in_each_form() {
        let no_id =
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request"},"id":null}"#;
        let spoken =
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session expired"},"id":4}"#;
        assert_eq!(status(404, true, &[], ""), RequestError::SessionLost);
        assert_eq!(status(400, true, &[], no_id), RequestError::SessionLost);
        assert_eq!(status(401, true, &[], spoken), RequestError::SessionLost);
        assert_eq!(
            status(503, true, &[], "unknown session"),
            RequestError::SessionLost
        );
        assert_eq!(
            status(404, false, &[], ""),
            RequestError::Http { status: 404 }
        );
        assert_eq!(
            status(400, false, &[], "nonsense"),
            RequestError::Http { status: 400 }
        );
        let challenge = [("www-authenticate", "Bearer error=\"invalid_token\"")];
        assert_eq!(
            status(401, true, &challenge, spoken),
            RequestError::Unauthorized { challenge: true }
        );
    }

    #[test]
    fn a_bad_request_is_not_a_lost_session() {
        let body = r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params"},"id":"server-error"}"#;
        assert!(matches!(
            status(400, true, &[], body),
            RequestError::Server { code: -32602, .. }
        ));
    }

    #[test]
    fn statuses_are_not_hidden_by_bodies() {
        let body = r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32002,"message":"gone"}}"#;
        assert_eq!(
            status(401, false, &[], body),
            RequestError::Unauthorized { challenge: false }
        );
        assert_eq!(status(403, true, &[], body), RequestError::Forbidden);
        assert!(status(404, true, &[], body).is_not_found());
        assert!(status(400, false, &[], body).is_not_found());
        assert_eq!(
            status(500, false, &[], "<html>"),
            RequestError::Http { status: 500 }
        );
    }

    #[test]
    fn retry_after_has_two_forms_and_a_limit() {
        let waits = |value: &str| match status(429, false, &[("retry-after", value)], "") {
            RequestError::RateLimited { retry_after } => retry_after,
            _ => None,
        };
        assert_eq!(waits("120"), Some(Duration::from_mins(2)));
        assert_eq!(waits("1000000000"), Some(MAX_RETRY_AFTER));
        assert_eq!(waits("99999999999999999999999999"), Some(MAX_RETRY_AFTER));
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));
        let wait = waits(&date).unwrap();
        assert!(wait > Duration::from_secs(80) && wait <= Duration::from_secs(90));
        assert_eq!(waits("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(waits("soon"), None);
        assert_eq!(
            status(429, false, &[], ""),
            RequestError::RateLimited { retry_after: None }
        );
    }

    #[test]
    fn rate_limits_are_heard_in_errors_too() {
        assert_eq!(
            read_error(Era::Legacy, -32000, "Rate limit exceeded"),
            RequestError::RateLimited { retry_after: None }
        );
    }

    #[test]
    fn messages_are_clipped_between_characters() {
        let RequestError::Server { message, .. } =
            read_error(Era::Legacy, -32603, &"ü𝄞".repeat(5000))
        else {
            unreachable!("a server error");
        };
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
    }
}

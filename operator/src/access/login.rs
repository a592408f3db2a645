//! Logging in with a browser: a token goes in once, and comes back as a cookie that no script can read.

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, RawQuery, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{CACHE_CONTROL, LOCATION, SET_COOKIE},
    },
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use chrono::Utc;

use super::{
    gate::{Gate, ours},
    token::{Presented, Token, cleared_cookie},
};
use crate::{api::ApiError, web::Shown};

/// A token, percent-encoded, and where to go.
const MAX_FORM_BYTES: usize = 64 * 1024;

/// A longer address would not fit the request that brought it.
const MAX_NEXT_BYTES: usize = 4096;

const WRONG: &str = "The API server does not know this token. It may have ended, or been cut in copying. Make a new one.";

pub fn router(gate: Gate) -> Router {
    Router::new()
        .route("/login", get(form).post(log_in))
        .route("/logout", post(log_out))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .with_state(gate)
}

async fn form(State(gate): State<Gate>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let next = local(field(query.unwrap_or_default().as_bytes(), "next").as_deref());
    gate.page.form(
        &headers,
        &Shown {
            status: StatusCode::OK,
            next: &next,
            trouble: None,
            has_cookie: matches!(Presented::of(&headers), Presented::Cookie(_)),
        },
    )
}

async fn log_in(State(gate): State<Gate>, headers: HeaderMap, body: Bytes) -> Response {
    if let Err(refusal) = ours(&Method::POST, &headers) {
        return refusal.private().await;
    }
    let next = local(field(&body, "next").as_deref());
    let again = |status, trouble: &str| {
        gate.page.form(
            &headers,
            &Shown {
                status,
                next: &next,
                trouble: Some(trouble),
                has_cookie: false,
            },
        )
    };
    let Some(token) = field(&body, "token").and_then(|text| Token::parse(&text)) else {
        return again(StatusCode::UNAUTHORIZED, WRONG);
    };
    match gate.access.caller(&token).await {
        Ok(Some(_)) => see(&next, Some(&token.cookie(Utc::now(), over_https(&headers)))),
        Ok(None) => again(StatusCode::UNAUTHORIZED, WRONG),
        Err(undecided) => {
            let problem = undecided.into_problem();
            let status = StatusCode::from_u16(problem.status);
            again(
                status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
                &problem.detail,
            )
        }
    }
}

async fn log_out(headers: HeaderMap) -> Result<Response, ApiError> {
    ours(&Method::POST, &headers)?;
    Ok(see("/login", Some(&cleared_cookie(over_https(&headers)))))
}

/// Sends a browser to the login page, and back here afterwards.
pub fn to_login(target: &str) -> Response {
    match local(Some(target)).as_str() {
        "/" => see("/login", None),
        target => {
            let next: String = url::form_urlencoded::byte_serialize(target.as_bytes()).collect();
            see(&format!("/login?next={next}"), None)
        }
    }
}

fn see(path: &str, cookie: Option<&str>) -> Response {
    let mut response = (
        StatusCode::SEE_OTHER,
        [(CACHE_CONTROL, HeaderValue::from_static("no-store"))],
    )
        .into_response();
    let path = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, path);
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// The path to go on to. Only one of this server: one slash and not two, no backslash, and nothing that browsers drop
/// before they look, so that it cannot become another site's address. Everything else leads to the overview.
fn local(next: Option<&str>) -> String {
    let next = next.unwrap_or_default();
    let ours = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= MAX_NEXT_BYTES
        && next
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path = next.split(['?', '#']).next().unwrap_or_default();
    if ours && !matches!(path, "/login" | "/logout") {
        next.to_owned()
    } else {
        "/".to_owned()
    }
}

fn field(form: &[u8], name: &str) -> Option<String> {
    url::form_urlencoded::parse(form)
        .find(|(given, _)| given == name)
        .map(|(_, value)| value.into_owned())
}

/// Whether the browser's side of the proxy is encrypted; then the cookie must stay there.
fn over_https(headers: &HeaderMap) -> bool {
    headers
        .get("x-forwarded-proto")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(',').next())
        .is_some_and(|first| first.trim().eq_ignore_ascii_case("https"))
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn only_a_path_of_this_server_is_gone_to() {
        for good in [
            "/",
            "/resources?q=a%20b&state=ACTIVE",
            "/resources/1#versions",
            "/a//b",
        ] {
            assert_eq!(local(Some(good)), good);
        }
        for bad in [
            "",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "https://evil.example",
            "evil.example",
            "javascript:alert(1)",
            " /x",
            "/x y",
            "/ä",
            "/login?next=/login",
            "/logout",
        ] {
            assert_eq!(local(Some(bad)), "/", "{bad:?}");
        }
        assert_eq!(local(None), "/");
    }
}

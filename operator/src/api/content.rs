//! The accepted bytes of a resource, with what a reader must know to trust them.
//!
//! The bytes are a stranger's: they keep their MIME type, and a browser that shows them may run, load
//! and submit nothing.

use axum::{
    extract::{Path, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse, Response},
};
use chrono::{DateTime, SecondsFormat, Utc};
use fencepost_ledger::Digest;
use fencepost_store::queries::{Bytes, Content};

use super::{
    ApiState,
    openapi::{FreshParam, OfResource, Refusals, Unknown, Withheld},
    parameters::{Parameters, resource_id},
    problem::ApiError,
};

const AS_OF: HeaderName = HeaderName::from_static("fencepost-as-of");
const STALE_AFTER: HeaderName = HeaderName::from_static("fencepost-stale-after");
const GENERATION: HeaderName = HeaderName::from_static("fencepost-generation");
const ORDINAL: HeaderName = HeaderName::from_static("fencepost-ordinal");
const STATE: HeaderName = HeaderName::from_static("fencepost-state");

/// Entity tags looked at in one request: a client has one, a cache a few.
const MAX_TAGS: usize = 64;

/// The accepted bytes as they are stored.
#[utoipa::path(get, path = "/api/v1/resources/{id}/content", tag = "resources",
    params(OfResource, FreshParam, ("If-None-Match" = Option<String>, Header, description = "Entity tags that the reader has")),
    responses(
        (status = 200, description = "The bytes, in the resource's MIME type", body = Vec<u8>, content_type = "application/octet-stream",
         headers(("ETag" = String, description = "The digest, quoted"),
                 ("Fencepost-As-Of" = String, description = "When a read last showed that this is current"),
                 ("Fencepost-Stale-After" = String, description = "As-Of plus maxStaleness"),
                 ("Fencepost-Generation" = u64, description = "Generation of the subscription"),
                 ("Fencepost-Ordinal" = u64, description = "The watermark"),
                 ("Fencepost-State" = String, description = "The public state"))),
        (status = 304, description = "The reader has it"),
        (status = 410, description = "Tombstoned", body = fencepost_views::Problem, content_type = "application/problem+json"),
        (status = 412, description = "fresh=required, and it is past its bound", body = fencepost_views::Problem, content_type = "application/problem+json"),
        Refusals, Unknown, Withheld))]
pub(super) async fn content(
    State(state): State<ApiState>,
    Path(id): Path<String>,
    mut parameters: Parameters,
    request: HeaderMap,
) -> Result<Response, ApiError> {
    let fresh = match parameters.text("fresh").as_deref() {
        None => false,
        Some("required") => true,
        Some(_) => {
            return Err(ApiError::bad_parameter(
                "fresh",
                "fresh must be `required` or be left out.",
            ));
        }
    };
    parameters.end()?;
    let known = Known::of(&request);
    let content = state
        .queries
        .content(resource_id(&id)?, &known.digests)
        .await?;
    let content = content.ok_or_else(|| ApiError::no_such_resource(&id))?;
    let headers = headers(&content);
    Ok((headers, answer(&id, content, fresh, known.any)).into_response())
}

fn answer(id: &str, content: Content, fresh: bool, any_known: bool) -> Response {
    let bytes = match content.bytes {
        Bytes::Revoked => return ApiError::revoked(id).into_response(),
        Bytes::Tombstoned => return ApiError::tombstoned(id).into_response(),
        Bytes::NothingAccepted => return ApiError::nothing_accepted(id).into_response(),
        Bytes::NotStored => return ApiError::content_not_stored(id).into_response(),
        Bytes::Known => None,
        Bytes::Stored(_) if any_known => None,
        Bytes::Stored(bytes) => Some(bytes),
    };
    if fresh && content.stale {
        return ApiError::past_bound(
            id,
            content.reason.as_deref().unwrap_or("PAST_MAX_STALENESS"),
        )
        .into_response();
    }
    let Some(bytes) = bytes else {
        return StatusCode::NOT_MODIFIED.into_response();
    };
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    (
        [
            (CONTENT_TYPE, content_type(content.mime_type.as_deref())),
            (CONTENT_SECURITY_POLICY, policy),
        ],
        bytes,
    )
        .into_response()
}

fn headers(content: &Content) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: Option<String>| {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    };
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    set(STATE, Some(content.state.clone()));
    set(GENERATION, Some(content.generation.to_string()));
    set(ORDINAL, Some(content.ordinal.to_string()));
    set(AS_OF, content.confirmed_at.map(time));
    set(STALE_AFTER, content.stale_after.map(time));
    if matches!(content.bytes, Bytes::Stored(_) | Bytes::Known) {
        set(
            ETAG,
            content
                .digest
                .as_ref()
                .map(|digest| format!("\"{digest}\"")),
        );
    }
    headers
}

/// What `If-None-Match` says that the reader has.
struct Known {
    digests: Vec<Digest>,
    /// `*`: anything that is there.
    any: bool,
}

impl Known {
    fn of(request: &HeaderMap) -> Self {
        let mut known = Self {
            digests: Vec::new(),
            any: false,
        };
        let lines = request
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|line| line.to_str().ok());
        // Our tags have no comma within; what others might have made is no digest and falls away.
        for tag in lines
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .take(MAX_TAGS)
        {
            known.any |= tag == "*";
            // Weak comparison (RFC 9110, 13.1.2).
            let tag = tag.strip_prefix("W/").unwrap_or(tag);
            let digest = tag
                .strip_prefix('"')
                .and_then(|tag| tag.strip_suffix('"'))
                .map(str::parse::<Digest>);
            known.digests.extend(digest.and_then(Result::ok));
        }
        known
    }
}

/// The server's MIME type if it is one, else "some bytes".
fn content_type(mime_type: Option<&str>) -> HeaderValue {
    mime_type
        .filter(|text| is_mime_type(text))
        .and_then(|text| HeaderValue::from_str(text).ok())
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// `type/subtype` of tokens (RFC 9110, 8.3.1), with parameters of visible characters behind.
fn is_mime_type(text: &str) -> bool {
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let Some((kind, subtype)) = essence.trim_end().split_once('/') else {
        return false;
    };
    token(kind)
        && token(subtype)
        && parameters
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mime_type_that_is_none_is_some_bytes() {
        for good in [
            "text/markdown",
            "text/plain; charset=utf-8",
            "application/vnd.x+json",
            "image/svg+xml",
        ] {
            assert_eq!(content_type(Some(good)), good);
        }
        for bad in [
            "",
            "text",
            "text/",
            "/plain",
            "text/pl ain",
            "text/html\r\nSet-Cookie: a=b",
            "text/ä",
            " text/html",
        ] {
            assert_eq!(
                content_type(Some(bad)),
                "application/octet-stream",
                "{bad:?}"
            );
        }
    }

    #[test]
    fn tags_are_taken_weak_and_strong_and_in_lists() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let mut request = HeaderMap::new();
        let value = format!("\"other\", W/\"{digest}\", \"{digest}\"");
        request.insert(
            IF_NONE_MATCH,
            HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static("")),
        );
        let known = Known::of(&request);
        assert_eq!((known.digests.len(), known.any), (2, false));
        request.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        assert!(Known::of(&request).any);
    }
}

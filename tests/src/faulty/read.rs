//! `resources/read` and `resources/list`, the same in both eras but for the frame around the result.

use std::{io, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures::{StreamExt as _, stream};

use crate::faulty::{
    State,
    counters::count,
    faults::{ListFault, ReadFault},
    message::{self, quoted},
};

/// What differs between the eras in a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    fn not_found(self) -> i64 {
        match self {
            Self::Legacy => -32002,
            Self::Modern => -32602,
        }
    }

    /// The members every complete result of the era has, with a trailing comma.
    fn prefix(self) -> &'static str {
        match self {
            Self::Legacy => "",
            Self::Modern => r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#,
        }
    }
}

pub async fn read(state: &State, id: &str, uri: &str, era: Era) -> Response {
    let _in_flight = state.counts.read_begins();
    let taken = state.resources.take(uri);
    let (fault, delay) = state
        .faults
        .read(|faults| (faults.read.clone(), faults.read_delay));
    if delay > Duration::ZERO {
        tokio::time::sleep(delay).await;
    }
    if let Some(gate) = taken.gate {
        gate.pass().await;
    }
    let contents = taken.contents.as_deref();
    match taken.fault.or(fault) {
        None => match contents {
            Some(contents) => {
                let prefix = era.prefix();
                message::json(
                    200,
                    message::result(id, &format!(r#"{{{prefix}"contents":[{contents}]}}"#)),
                )
            }
            None => not_found(id, uri, era),
        },
        Some(fault) => fail(id, uri, era, contents.unwrap_or("{}"), fault).await,
    }
}

fn not_found(id: &str, uri: &str, era: Era) -> Response {
    let data = format!(r#"{{"uri":{}}}"#, quoted(uri));
    message::json(
        200,
        message::error(Some(id), era.not_found(), "resource not found", &data),
    )
}

async fn fail(id: &str, uri: &str, era: Era, contents: &str, fault: ReadFault) -> Response {
    let prefix = era.prefix();
    let complete =
        |contents: &str| message::result(id, &format!(r#"{{{prefix}"contents":[{contents}]}}"#));
    match fault {
        ReadFault::Status(status) => message::text(status, "this read fails on purpose"),
        ReadFault::Unauthorized => unauthorized(),
        ReadFault::Forbidden => {
            let challenge = r#"Bearer error="insufficient_scope", scope="resources:read""#;
            message::with_header(
                message::text(403, "insufficient scope"),
                "www-authenticate",
                challenge,
            )
        }
        ReadFault::TooManyRequests { retry_after } => {
            let response = message::text(429, "too many requests");
            match retry_after {
                Some(value) => message::with_header(response, "retry-after", &value),
                None => response,
            }
        }
        ReadFault::RateLimitedInBody => message::json(
            200,
            message::error(Some(id), -32000, "rate limit exceeded, retry later", ""),
        ),
        ReadFault::Error { code, message } => {
            message::json(200, message::error(Some(id), code, &message, ""))
        }
        ReadFault::NotFound => not_found(id, uri, era),
        ReadFault::NoAnswer => std::future::pending().await,
        ReadFault::ResultAndError => {
            let result = format!(r#"{{{prefix}"contents":[{contents}]}}"#);
            let error = r#"{"code":-32603,"message":"and an error"}"#;
            message::json(
                200,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result},"error":{error}}}"#),
            )
        }
        ReadFault::EmptyContents => message::json(200, complete("")),
        ReadFault::WrongUri => message::json(
            200,
            complete(r#"{"uri":"other://resource","mimeType":"text/plain","text":"of another"}"#),
        ),
        ReadFault::InputRequired => {
            let result =
                r#"{"resultType":"input_required","inputRequests":{},"requestState":"more"}"#;
            message::json(200, message::result(id, result))
        }
        ReadFault::Redirect(location) => {
            message::with_header(message::empty(307), "location", &location)
        }
        ReadFault::Accepted => message::empty(202),
        ReadFault::Cut => {
            let half = complete(contents);
            let half = Bytes::from(half.get(..half.len() / 2).unwrap_or_default().to_owned());
            // The pause lets the first half reach the client.
            let cut = stream::once(async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "cut on purpose",
                ))
            });
            let mut response =
                Response::new(Body::from_stream(stream::iter([Ok(half)]).chain(cut)));
            response.headers_mut().insert(
                "content-type",
                axum::http::HeaderValue::from_static("application/json"),
            );
            response
        }
    }
}

pub fn unauthorized() -> Response {
    let challenge = r#"Bearer error="invalid_token""#;
    message::with_header(
        message::text(401, "unauthorized"),
        "www-authenticate",
        challenge,
    )
}

pub async fn list(state: &State, id: &str, cursor: Option<&str>, era: Era) -> Response {
    count(&state.counts.lists);
    let (fault, delay, size) = state.faults.read(|faults| {
        (
            faults.list.clone(),
            faults.list_delay,
            faults.page_size.max(1),
        )
    });
    if delay > Duration::ZERO {
        tokio::time::sleep(delay).await;
    }
    // A cursor is "<page>:<last URI>", which is nobody's business but ours.
    let (page, after) = match cursor.map(|cursor| {
        cursor
            .split_once(':')
            .and_then(|(page, uri)| Some((page.parse().ok()?, uri)))
    }) {
        None => (1_usize, None),
        Some(Some((page, uri))) => (page, Some(uri)),
        Some(None) => {
            return message::json(200, message::error(Some(id), -32602, "invalid cursor", ""));
        }
    };
    match fault {
        ListFault::PageStatus {
            page: failing,
            status,
        } if failing == page => {
            return message::text(status, "this page fails on purpose");
        }
        ListFault::PageError {
            page: failing,
            code,
        } if failing == page => {
            return message::json(
                200,
                message::error(Some(id), code, "this page fails on purpose", ""),
            );
        }
        _ => {}
    }
    let (items, more) = state.resources.page(after, size);
    let next = match items.last() {
        _ if fault == ListFault::CursorNeverAdvances => Some("1:".to_owned()),
        Some((last, _)) if more => Some(format!("{}:{last}", page + 1)),
        _ => None,
    };
    let written: Vec<String> = items
        .iter()
        .enumerate()
        .map(|(index, (uri, mime))| {
            let (uri, mime) = (quoted(uri), quoted(mime));
            if fault == ListFault::NamelessItem && index == 0 {
                format!(r#"{{"uri":{uri},"mimeType":{mime}}}"#)
            } else {
                format!(r#"{{"uri":{uri},"name":{uri},"mimeType":{mime}}}"#)
            }
        })
        .collect();
    let next = next
        .map(|next| format!(r#","nextCursor":{}"#, quoted(&next)))
        .unwrap_or_default();
    let result = format!(
        r#"{{{}"resources":[{}]{next}}}"#,
        era.prefix(),
        written.join(",")
    );
    message::json(200, message::result(id, &result))
}

pub fn templates(id: &str, era: Era) -> Response {
    message::json(
        200,
        message::result(
            id,
            &format!(r#"{{{}"resourceTemplates":[]}}"#, era.prefix()),
        ),
    )
}

//! JSON-RPC as bytes: requests taken apart no further than needed, answers put together by hand for speed.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::Response,
};
use serde::Deserialize;
use serde_json::value::RawValue;

pub const MODERN: &str = "2026-07-28";

#[derive(Deserialize)]
pub struct Message<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    pub method: Option<String>,
    #[serde(default)]
    pub params: Params,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Params {
    pub uri: Option<String>,
    pub cursor: Option<String>,
    pub protocol_version: Option<String>,
    pub notifications: Filter,
    #[serde(rename = "_meta")]
    pub meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<String>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<serde_json::Value>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<serde_json::Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    pub resources_list_changed: bool,
    pub resource_subscriptions: Vec<String>,
}

/// A JSON string literal.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// `data` is JSON, or empty for none.
pub fn error(id: Option<&str>, code: i64, message: &str, data: &str) -> String {
    let id = id.map(|id| format!(r#","id":{id}"#)).unwrap_or_default();
    let data = if data.is_empty() {
        String::new()
    } else {
        format!(r#","data":{data}"#)
    };
    format!(
        r#"{{"jsonrpc":"2.0"{id},"error":{{"code":{code},"message":{}{data}}}}}"#,
        quoted(message)
    )
}

/// `subscription` is the id of a listen request, for the modern era.
pub fn updated(uri: &str, subscription: Option<&str>) -> String {
    let meta = meta(subscription)
        .map(|meta| format!(",{meta}"))
        .unwrap_or_default();
    let uri = quoted(uri);
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":{uri}{meta}}}}}"#
    )
}

pub fn list_changed(subscription: Option<&str>) -> String {
    let meta = meta(subscription).unwrap_or_default();
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{{{meta}}}}}"#
    )
}

fn meta(subscription: Option<&str>) -> Option<String> {
    subscription.map(|id| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#))
}

pub fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

pub fn json(status: u16, body: String) -> Response {
    respond(status, Some("application/json"), body)
}

pub fn text(status: u16, body: &str) -> Response {
    respond(status, Some("text/plain"), body.to_owned())
}

pub fn empty(status: u16) -> Response {
    respond(status, None, String::new())
}

pub fn stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-cache"),
    );
    response
}

pub fn with_header(mut response: Response, name: &'static str, value: &str) -> Response {
    let value = value
        .parse()
        .expect("a fault's header value is a header value");
    response.headers_mut().insert(name, value);
    response
}

fn respond(status: u16, kind: Option<&'static str>, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() =
        StatusCode::from_u16(status).expect("a fault's status is an HTTP status");
    if let Some(kind) = kind {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    }
    response
}

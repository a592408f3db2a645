//! Just enough of a client to see every byte: a POST, and a stream of server-sent events with a deadline.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;

/// What the tests wait for a notification at most.
pub const LIMIT: Duration = Duration::from_secs(2);

pub struct Events {
    response: futures::stream::BoxStream<'static, reqwest::Result<axum::body::Bytes>>,
    text: String,
}

impl Events {
    pub fn of(response: reqwest::Response) -> Self {
        Self {
            response: response.bytes_stream().boxed(),
            text: String::new(),
        }
    }

    /// The next message with data, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let data: String = event
                    .lines()
                    .filter_map(|line| line.strip_prefix("data:"))
                    .map(str::trim)
                    .collect();
                if !data.is_empty() {
                    return Some(serde_json::from_str(&data).unwrap());
                }
            }
            let bytes = self.response.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// The messages up to the first that `wanted` accepts, that one last.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        let found = tokio::time::timeout(LIMIT, async {
            while let Some(message) = self.next().await {
                let found = wanted(&message);
                seen.push(message);
                if found {
                    return true;
                }
            }
            false
        })
        .await;
        assert_eq!(found, Ok(true), "no {what} in time; seen: {seen:#?}");
        seen
    }
}

/// The one answer of a POST, be it JSON or a stream.
pub async fn answer(response: reqwest::Response) -> Value {
    let kind = response.headers()[reqwest::header::CONTENT_TYPE]
        .to_str()
        .unwrap()
        .to_owned();
    if kind.starts_with("text/event-stream") {
        let mut events = Events::of(response);
        events
            .until("answer", |message| message.get("id").is_some())
            .await
            .pop()
            .unwrap()
    } else {
        response.json().await.unwrap()
    }
}

pub fn is_update(message: &Value, uri: &str) -> bool {
    message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
}

pub fn is_list_changed(message: &Value) -> bool {
    message["method"] == "notifications/resources/list_changed"
}

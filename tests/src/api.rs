//! The HTTP API of a running Fencepost, as its clients see it.

use std::time::Duration;

use serde_json::Value;

use crate::wait;

/// What must come true soon does so within this, also on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// Asks one process.
pub struct Api {
    /// `http://127.0.0.1:PORT`
    pub base: String,
    http: reqwest::Client,
}

impl Api {
    /// # Panics
    ///
    /// When no client can be made.
    pub fn new(base: String) -> Self {
        Self {
            base,
            http: reqwest::Client::builder()
                .no_proxy()
                .build()
                .expect("a client"),
        }
    }

    /// # Panics
    ///
    /// When nobody answers.
    pub async fn answer(&self, path: &str) -> reqwest::Response {
        let url = format!("{}{path}", self.base);
        let answer = self.http.get(&url).send().await;
        answer.unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// # Panics
    ///
    /// When the answer is no success, or no JSON.
    pub async fn get(&self, path: &str) -> Value {
        let answer = self.answer(path).await;
        let status = answer.status();
        let body = answer.text().await.unwrap_or_default();
        assert!(status.is_success(), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }

    pub async fn metrics(&self) -> String {
        self.answer("/metrics")
            .await
            .text()
            .await
            .unwrap_or_default()
    }

    /// The resources of that URI. After a recreation there are several.
    async fn named(&self, uri: &str) -> Vec<Value> {
        let mut page = self.get("/api/v1/resources?limit=500").await;
        let Value::Array(items) = page["items"].take() else {
            return Vec::new();
        };
        items.into_iter().filter(|r| r["uri"] == uri).collect()
    }

    /// A resource of that URI, if the ledger has one.
    pub async fn find(&self, uri: &str) -> Option<Value> {
        self.named(uri).await.into_iter().next()
    }

    /// Waits for a resource of that URI that is as wanted.
    pub async fn resource(&self, what: &str, uri: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait::until(what, SOON, async || {
            let named = self.named(uri).await;
            named.iter().find(|r| wanted(r)).cloned().ok_or(named)
        })
        .await
    }

    /// Waits until the stored content of that URI is this text; the resource as it is then.
    pub async fn content(&self, uri: &str, text: &str) -> Value {
        let resource = self
            .resource("a version", uri, |r| !r["digest"].is_null())
            .await;
        let path = path_of(&resource, "content");
        wait::until("the content", SOON, async || {
            let held = self.answer(&path).await.text().await.unwrap_or_default();
            if held == text { Ok(()) } else { Err(held) }
        })
        .await;
        self.get(&path_of(&resource, "")).await
    }

    /// Newest first.
    pub async fn receipts(&self, resource: &Value) -> Vec<Value> {
        self.list(resource, "receipts").await
    }

    /// Newest first.
    pub async fn versions(&self, resource: &Value) -> Vec<Value> {
        self.list(resource, "versions").await
    }

    async fn list(&self, resource: &Value, of: &str) -> Vec<Value> {
        let mut page = self
            .get(&format!("{}?limit=500", path_of(resource, of)))
            .await;
        match page["items"].take() {
            Value::Array(items) => items,
            other => panic!("{of}: {other}"),
        }
    }
}

fn path_of(resource: &Value, of: &str) -> String {
    let id = resource["id"].as_str().unwrap_or_default();
    let slash = if of.is_empty() { "" } else { "/" };
    format!("/api/v1/resources/{id}{slash}{of}")
}

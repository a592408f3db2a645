//! A running `fencepost dev` over manifests in a folder, and its API.

use std::{path::PathBuf, time::Duration};

use fencepost_tests::{binary::Fencepost, ledger, postgres::Database, wait};
use serde_json::Value;
use tempfile::TempDir;

/// What must come true soon does so within this, also on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

pub struct World {
    folder: TempDir,
    database: Database,
    port: u16,
    pub fencepost: Fencepost,
    pub base: String,
    http: reqwest::Client,
}

impl World {
    pub async fn start(manifests: &str) -> Self {
        Self::start_on(manifests, 0).await
    }

    /// On a port that it comes back to when it is started again.
    pub async fn start_on(manifests: &str, port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("manifests.yaml"), manifests).unwrap();
        let database = Database::fresh().await;
        let (fencepost, base) = serve(&folder, &database, port).await;
        Self {
            folder,
            database,
            port,
            fencepost,
            base,
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// Starts it anew on the same manifests and database.
    pub async fn start_again(&mut self) {
        (self.fencepost, self.base) = serve(&self.folder, &self.database, self.port).await;
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, manifests: &str) {
        std::fs::write(self.file("manifests.yaml"), manifests).unwrap();
    }

    pub async fn answer(&self, path: &str) -> reqwest::Response {
        self.http
            .get(format!("{}{path}", self.base))
            .send()
            .await
            .unwrap()
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer = self.answer(path).await;
        let status = answer.status();
        let body = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The resource of that URI, if the ledger has it.
    pub async fn find(&self, uri: &str) -> Option<Value> {
        let page = self.get("/api/v1/resources?limit=500").await;
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|r| r["uri"] == uri)
            .cloned()
    }

    /// Waits until the resource of that URI is as wanted.
    pub async fn resource(&self, what: &str, uri: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait::until(what, SOON, async || match self.find(uri).await {
            Some(resource) if wanted(&resource) => Ok(resource),
            other => Err(other),
        })
        .await
    }

    /// Waits until its stored content is this text.
    pub async fn content(&self, uri: &str, text: &str) -> Value {
        let resource = self
            .resource("a version", uri, |r| !r["digest"].is_null())
            .await;
        let path = format!(
            "/api/v1/resources/{}/content",
            resource["id"].as_str().unwrap()
        );
        wait::until("the content", SOON, async || {
            let held = self.answer(&path).await.text().await.unwrap();
            if held == text { Ok(()) } else { Err(held) }
        })
        .await;
        self.find(uri).await.unwrap()
    }

    pub async fn receipts(&self, resource: &Value) -> Vec<Value> {
        self.list(resource, "receipts").await
    }

    pub async fn versions(&self, resource: &Value) -> Vec<Value> {
        self.list(resource, "versions").await
    }

    async fn list(&self, resource: &Value, of: &str) -> Vec<Value> {
        let path = format!(
            "/api/v1/resources/{}/{of}?limit=500",
            resource["id"].as_str().unwrap()
        );
        self.get(&path).await["items"].as_array().unwrap().clone()
    }

    pub async fn sql(&self, query: &'static str) -> i64 {
        ledger::count(&self.database.url, query).await
    }

    /// See [`ledger::holds`].
    pub async fn ledger_holds(&self) {
        ledger::holds(&self.database.url).await;
    }
}

async fn serve(folder: &TempDir, database: &Database, port: u16) -> (Fencepost, String) {
    let listen = format!("127.0.0.1:{port}");
    let path = folder.path().to_str().unwrap();
    let mut fencepost = Fencepost::serving([
        "dev",
        path,
        "--database-url",
        &database.url,
        "--listen",
        &listen,
    ])
    .await;
    let base = fencepost.base_url().await;
    (fencepost, base)
}

/// An `MCPServer` named `server`.
pub fn server(url: &str) -> String {
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: MCPServer\nmetadata: {{name: server, namespace: agents}}\n\
         spec: {{url: \"{url}\", limits: {{requestTimeout: 2s, requestsPerSecond: 1000}}}}\n---\n"
    )
}

/// A `WatchedResource` of that server; `refresh` as a flow mapping.
pub fn watch(name: &str, uris: &[&str], refresh: &str) -> String {
    let uris: Vec<String> = uris.iter().map(|uri| format!("{uri:?}")).collect();
    format!(
        "apiVersion: fencepost.dev/v1alpha1\nkind: WatchedResource\nmetadata: {{name: {name}, namespace: agents}}\n\
         spec: {{serverRef: {{name: server}}, uris: [{}], refresh: {refresh}}}\n---\n",
        uris.join(", ")
    )
}

/// A `DerivedIndex` and its Secret.
pub fn index(name: &str, url: &str, secret: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}-hook, namespace: agents}}\nstringData: {{key: {secret}}}\n---\n\
         apiVersion: fencepost.dev/v1alpha1\nkind: DerivedIndex\nmetadata: {{name: {name}, namespace: agents}}\n\
         spec: {{webhook: {{url: \"{url}\", signingSecretRef: {{name: {name}-hook, key: key}}}}}}\n---\n"
    )
}

/// Bounds that no test waits for: what happens is the notifications' doing.
pub const LAZY: &str = "{mode: Auto, maxStaleness: 10m, pollInterval: 5m}";

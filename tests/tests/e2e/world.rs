//! A running `fencepost dev` over manifests in a folder, and its API.

use std::{ops::Deref, path::PathBuf, time::Duration};

use fencepost_tests::{api::Api, binary::Fencepost, ledger, postgres::Database};
use tempfile::TempDir;

/// What must come true soon does so within this, also on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

pub struct World {
    folder: TempDir,
    pub database: Database,
    port: u16,
    pub fencepost: Fencepost,
    api: Api,
}

impl Deref for World {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
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
            api: Api::new(base),
        }
    }

    /// Starts it anew on the same manifests and database.
    pub async fn start_again(&mut self) {
        let (fencepost, base) = serve(&self.folder, &self.database, self.port).await;
        self.fencepost = fencepost;
        self.api = Api::new(base);
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, manifests: &str) {
        std::fs::write(self.file("manifests.yaml"), manifests).unwrap();
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

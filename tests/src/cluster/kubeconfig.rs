//! Kubeconfig files: where the API server is, and who asks.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use base64::Engine as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// An API server as a kubeconfig names it: the object `cluster` of its only entry.
#[derive(Clone, Debug)]
pub struct Endpoint(Value);

impl Endpoint {
    /// `certificate` is PEM: what clients trust.
    pub(super) fn new(url: &str, certificate: &[u8]) -> Self {
        let encoded = base64::engine::general_purpose::STANDARD.encode(certificate);
        Self(json!({"server": url, "certificate-authority-data": encoded}))
    }

    /// That of the current context of `kubectl config view --minify --flatten -o json`.
    pub(super) fn of(view: &Value) -> Option<Self> {
        let cluster = view.pointer("/clusters/0/cluster")?;
        cluster.get("server")?.as_str()?;
        Some(Self(cluster.clone()))
    }

    /// What clients trust, as PEM.
    ///
    /// # Panics
    ///
    /// When the kubeconfig that it came from has it elsewhere.
    pub fn certificate(&self) -> Vec<u8> {
        let encoded = self.0["certificate-authority-data"]
            .as_str()
            .expect("the kubeconfig holds its certificate authority");
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .expect("a kubeconfig holds base64")
    }

    pub fn url(&self) -> &str {
        self.0["server"].as_str().unwrap_or_default()
    }

    /// Writes a kubeconfig for the bearer of this token, and returns its path. Only the owner can read it.
    pub(super) fn write(&self, folder: &Path, name: &str, token: &str, namespace: &str) -> PathBuf {
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": self.0}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name, "namespace": namespace}}],
            "current-context": name,
        });
        write_private(
            &folder.join(format!("{name}.kubeconfig")),
            &content.to_string(),
        )
    }
}

/// Replaces the file as one step, so that a reader sees the old content or the new one.
pub(super) fn write_private(path: &Path, content: &str) -> PathBuf {
    let fresh = path.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let mut file = fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&fresh)
        .expect("a file can be made in the cluster's folder");
    file.write_all(content.as_bytes())
        .expect("a file can be written in the cluster's folder");
    fs::rename(&fresh, path).expect("a file can be renamed in the cluster's folder");
    path.to_owned()
}

/// A client with the rights of this kubeconfig. It lives as long as the runtime that it is made in.
///
/// # Panics
///
/// When the file is not a kubeconfig.
pub(super) async fn client(path: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(path).expect("the file is a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .expect("the kubeconfig is complete");
    kube::Client::try_from(config).expect("the kubeconfig makes a client")
}

//! The Python SDK: modern with subscribe; its legacy side declares none. Twelve notes in pages of five.

use std::{collections::BTreeMap, process::Command};

use serde_json::{Value, json};

use super::{RealServer, install};

pub struct PythonModern {
    pub server: RealServer,
}

impl PythonModern {
    /// The URIs it starts with are `memo://notes/0` to `memo://notes/11`, with the text `note N`.
    pub async fn start() -> Self {
        let python = install::python();
        let server = RealServer::start("python sdk", move || {
            let mut command = Command::new(&python);
            command.arg(install::sources().join("modern.py"));
            command
        });
        Self {
            server: server.await,
        }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Sets a text; the SDK tells who listens.
    pub async fn set(&self, uri: &str, text: &str) {
        self.control(&json!({"set": BTreeMap::from([(uri, text)])}))
            .await;
    }

    pub async fn remove(&self, uri: &str) {
        self.control(&json!({"remove": [uri]})).await;
    }

    async fn control(&self, order: &Value) {
        let url = format!("{}/control", self.server.base());
        let done = reqwest::Client::new()
            .post(url)
            .json(order)
            .send()
            .await
            .expect("the server is up");
        assert!(done.status().is_success(), "control: {}", done.status());
    }
}

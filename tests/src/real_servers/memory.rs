//! mcp-proxy in front of server-memory: both eras over HTTP, one resource, and real changes through a tool.

use serde_json::json;
use tempfile::TempDir;

use super::{LegacyClient, RealServer, install, server::node};

pub struct Memory {
    pub server: RealServer,
    _folder: TempDir,
}

impl Memory {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("memory.jsonl");
        let memory =
            install::node().join("node_modules/@modelcontextprotocol/server-memory/dist/index.js");
        let server = RealServer::start("mcp-proxy", move || {
            let mut command = node("mcp-proxy/dist/bin/mcp-proxy.mjs");
            command
                .args(["--host", "127.0.0.1", "--port", "1", "--", "node"])
                .arg(&memory);
            command.env("MEMORY_FILE_PATH", &file);
            command
        });
        Self {
            server: server.await,
            _folder: folder,
        }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Changes the resource by the server's own tool, called by a client of its own.
    pub async fn create_entity(&self, name: &str) {
        let client = LegacyClient::connect(&self.url()).await;
        let entity =
            json!({"name": name, "entityType": "test", "observations": ["made by a test"]});
        let answer = client
            .call(
                "tools/call",
                json!({"name": "create_entities", "arguments": {"entities": [entity]}}),
            )
            .await;
        assert!(
            answer["result"]["isError"] != true && answer.get("error").is_none(),
            "create_entities: {answer}"
        );
        client.close().await;
    }
}

//! The demo server as a client meets it: plain HTTP in both eras, and lines over standard input and output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod legacy;
mod lines;
mod modern;
mod start;

use std::{net::SocketAddr, path::Path};

use fencepost_demo::{DemoConfig, Running, serve};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A folder with a few files, served until this is dropped.
struct Demo {
    root: tempfile::TempDir,
    running: Running,
    shutdown: DropGuard,
}

impl Demo {
    async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "limits.json", r#"{"max_batch": 500}"#);
        write(root.path(), "team/on call.md", "# On call\n");
        std::fs::write(root.path().join("logo.bin"), [0xff, 0xfe, 0x00]).unwrap();
        let shutdown = CancellationToken::new();
        let config = DemoConfig {
            root: root.path().to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let running = serve(config, shutdown.clone()).await.unwrap();
        Self {
            root,
            running,
            shutdown: shutdown.drop_guard(),
        }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.running.addr)
    }

    fn write(&self, path: &str, text: &str) {
        write(self.root.path(), path, text);
    }

    /// As editors save: another file, then a rename over the old name.
    fn replace(&self, path: &str, text: &str) {
        let aside = self.root.path().join(".aside");
        std::fs::write(&aside, text).unwrap();
        std::fs::rename(aside, self.root.path().join(path)).unwrap();
    }

    fn delete(&self, path: &str) {
        std::fs::remove_file(self.root.path().join(path)).unwrap();
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

//! `server-everything`, in the edition that updates every subscribed URI each ten seconds by itself and in the one that does not.

use super::{RealServer, install, server::node};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// 2025.12.18: 100 resources in pages of 10, updates by itself, a lost session is 400 without an id.
    December2025,
    /// 2026.8.31: updates by a tool of the same session, event ids with replay.
    August2026,
}

impl Edition {
    fn package(self) -> &'static str {
        match self {
            Self::December2025 => "everything-2025",
            Self::August2026 => "everything-2026",
        }
    }
}

pub struct Everything {
    pub server: RealServer,
}

impl Everything {
    pub async fn start(edition: Edition) -> Self {
        let server = RealServer::start(edition.package(), move || {
            let mut command = node(&format!("{}/dist/index.js", edition.package()));
            command.arg("streamableHttp");
            command
        });
        Self {
            server: server.await,
        }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }
}

/// The command line of the same server over standard input and output: program, arguments.
pub fn everything_stdio(edition: Edition) -> Vec<String> {
    let script = install::node()
        .join("node_modules")
        .join(edition.package())
        .join("dist/index.js");
    vec![
        "node".to_owned(),
        script.display().to_string(),
        "stdio".to_owned(),
    ]
}

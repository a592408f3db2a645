//! Examples of the TypeScript SDK.

use super::{RealServer, server::node};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkExample {
    /// Its list grows, and list-changed comes, every five seconds by itself. Legacy, no subscribe.
    GrowingList,
    /// No sessions; refuses GET with 405.
    Stateless,
}

impl SdkExample {
    fn script(self) -> &'static str {
        match self {
            Self::GrowingList => "standaloneSseWithGetStreamableHttp.js",
            Self::Stateless => "simpleStatelessStreamableHttp.js",
        }
    }
}

pub struct SdkServer {
    pub server: RealServer,
}

impl SdkServer {
    pub async fn start(example: SdkExample) -> Self {
        let server = RealServer::start(example.script(), move || {
            node(&format!(
                "@modelcontextprotocol/sdk/dist/esm/examples/server/{}",
                example.script()
            ))
        });
        Self {
            server: server.await,
        }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }
}

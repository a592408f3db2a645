//! What a session is opened with: where, in which era, as whom, within which bounds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::egress::EgressPolicy;

/// The two incompatible generations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize`, a session, `resources/subscribe`.
    Legacy,
    /// 2026-07-28: no session, `_meta` on each request, `subscriptions/listen`.
    Modern,
}

impl Era {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which era to speak; `Auto` finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Protocol {
    #[default]
    Auto,
    Legacy,
    Modern,
}

/// How the server is reached.
#[derive(Clone)]
pub enum Transport {
    /// Streamable HTTP. `ca_pem`: certificates trusted in addition to the system's.
    Http { url: Url, ca_pem: Option<Vec<u8>> },
    /// A child process that speaks newline-delimited JSON. It sees `env` and a few harmless variables of ours, not
    /// the whole environment: that may hold database passwords.
    Stdio {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
}

impl fmt::Debug for Transport {
    /// A URL's query, arguments and variables may hold secrets, so only the host or the command is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { url, .. } => f
                .debug_struct("Http")
                .field("host", &url.host_str())
                .finish_non_exhaustive(),
            Self::Stdio { command, .. } => f
                .debug_struct("Stdio")
                .field("command", command)
                .finish_non_exhaustive(),
        }
    }
}

/// Asked anew for every HTTP request (POST, GET stream, DELETE), so a rotated token is used at once.
pub trait Credentials: Send + Sync + 'static {
    /// The header that proves the subject, its value marked sensitive; `None` is anonymous.
    fn header(&self) -> Option<(HeaderName, HeaderValue)>;
}

/// No credentials at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anonymous;

impl Credentials for Anonymous {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        None
    }
}

/// The bounds of one session.
#[derive(Debug, Clone)]
pub struct ClientLimits {
    /// From the dispatch of a request to its whole answer. Keepalives do not extend it.
    pub request_timeout: Duration,
    /// TCP and TLS set-up.
    pub connect_timeout: Duration,
    /// How long `connect` waits for the era probe and for the first notification stream before it goes on without.
    pub probe_timeout: Duration,
    /// Decoded bytes of all contents of one read.
    pub max_content_bytes: usize,
    /// Bytes of one JSON-RPC message: a JSON body, an SSE event, a stdio line.
    pub max_message_bytes: usize,
    /// Events waiting for the engine; past it they fold into one `Gap(Lagged)`.
    pub event_buffer: usize,
    /// A notification stream without a byte for so long is opened anew. `None` (the default): silence is legal, since
    /// Go servers send no keepalive at all; dead peers are found by TCP keepalive.
    pub stream_idle: Option<Duration>,
    /// First and longest wait before a notification stream is opened again.
    pub stream_backoff: (Duration, Duration),
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            // The reference SDKs give up after 60 s; a read that takes half of that has missed every freshness bound.
            request_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            // A server that knows `server/discover` answers it from memory.
            probe_timeout: Duration::from_secs(5),
            max_content_bytes: 8 * 1024 * 1024,
            // Base64 and JSON escapes may double the content; 4 MiB more for what surrounds it.
            max_message_bytes: 20 * 1024 * 1024,
            // A whole page of 1,000 URIs four times over, at about 100 bytes each.
            event_buffer: 4096,
            stream_idle: None,
            stream_backoff: (Duration::from_millis(500), Duration::from_secs(30)),
        }
    }
}

/// Everything `connect` needs.
pub struct ConnectConfig {
    pub transport: Transport,
    pub protocol: Protocol,
    /// The era this server spoke last time: tried first under `Protocol::Auto`, so that a legacy server is not probed
    /// at each reconnect.
    pub remembered_era: Option<Era>,
    pub credentials: Arc<dyn Credentials>,
    pub egress: EgressPolicy,
    pub limits: ClientLimits,
    /// Starting a process is refused unless the composition root says otherwise (only `dev` does).
    pub allow_stdio: bool,
}

impl fmt::Debug for ConnectConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectConfig")
            .field("transport", &self.transport)
            .field("protocol", &self.protocol)
            .field("remembered_era", &self.remembered_era)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

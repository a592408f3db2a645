//! Why a request or a connection attempt failed, in words that a log, a metric and a person can use.

use std::time::Duration;

use thiserror::Error;

use crate::address::AddressRefusal;
use crate::egress::EgressError;

/// One request's failure. Never holds a token, a session id or a URL's query.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("the server says that the resource does not exist (code {code})")]
    NotFound { code: i64 },
    #[error("the server refused the credential (401); renew the subject's secret")]
    Unauthorized {
        /// Whether `WWW-Authenticate` came with it.
        challenge: bool,
    },
    #[error("the server does not allow this subject to do that (403)")]
    Forbidden,
    #[error("the server limits the rate of requests; ask again later")]
    RateLimited {
        /// From either form of `Retry-After`, at most one hour.
        retry_after: Option<Duration>,
    },
    #[error("the server wants input from a person; it cannot be given here")]
    InputRequired,
    #[error("the server does not know this method")]
    MethodNotFound,
    #[error("no answer within the deadline")]
    Timeout,
    #[error("the answer is larger than {limit} bytes; raise the limit or exclude the resource")]
    TooLarge { limit: usize },
    #[error(
        "redirected to another origin ({host}), which is never followed; use the final address"
    )]
    RedirectRefused { host: String },
    #[error("connecting there is refused: {reason}")]
    AddressRefused { reason: AddressRefusal },
    #[error("the session is over; connect again")]
    SessionLost,
    #[error("the connection ended without an answer")]
    Disconnected,
    #[error("the server broke the protocol: {detail}")]
    Protocol { detail: String },
    #[error("the server answered with error {code}: {message}")]
    Server {
        code: i64,
        /// At most 500 characters of what the server wrote; untrusted text.
        message: String,
    },
    #[error("the server answered with HTTP status {status}")]
    Http { status: u16 },
}

impl RequestError {
    pub(crate) fn protocol(detail: impl Into<String>) -> Self {
        Self::Protocol {
            detail: detail.into(),
        }
    }

    /// A stable word for log fields, metric labels and receipts.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NOT_FOUND",
            Self::Unauthorized { .. } => "UNAUTHORIZED",
            Self::Forbidden => "FORBIDDEN",
            Self::RateLimited { .. } => "RATE_LIMITED",
            Self::InputRequired => "INPUT_REQUIRED",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::Timeout => "TIMEOUT",
            Self::TooLarge { .. } => "TOO_LARGE",
            Self::RedirectRefused { .. } => "REDIRECT_REFUSED",
            Self::AddressRefused { .. } => "ADDRESS_REFUSED",
            Self::SessionLost => "SESSION_LOST",
            Self::Disconnected => "DISCONNECTED",
            Self::Protocol { .. } => "PROTOCOL_ERROR",
            Self::Server { .. } => "SERVER_ERROR",
            Self::Http { .. } => "HTTP_ERROR",
        }
    }

    /// Whether the server clearly said that the resource is not there. Empty contents are not that.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// Why no session came to be.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("starting a local MCP server is not allowed here; use an HTTP address")]
    StdioNotAllowed,
    #[error("the local MCP server `{command}` could not be started; check the command")]
    Spawn {
        command: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the connection could not be prepared")]
    Egress(#[from] EgressError),
    #[error("the server cannot be reached: {detail}")]
    Unreachable { detail: String },
    #[error("no protocol version in common; the server offers {}", offered.join(", "))]
    NoCommonVersion { offered: Vec<String> },
    #[error("`{phase}` failed")]
    Handshake {
        /// The method that failed.
        phase: &'static str,
        #[source]
        source: RequestError,
    },
}

impl ConnectError {
    /// A stable word for log fields, metric labels and conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::StdioNotAllowed => "STDIO_NOT_ALLOWED",
            Self::Spawn { .. } => "SPAWN_FAILED",
            Self::Egress(_) => "EGRESS_MISCONFIGURED",
            Self::Unreachable { .. } => "UNREACHABLE",
            Self::NoCommonVersion { .. } => "NO_COMMON_VERSION",
            Self::Handshake { source, .. } => source.reason(),
        }
    }

    /// The request failure behind it, where there is one.
    pub fn request_error(&self) -> Option<&RequestError> {
        match self {
            Self::Handshake { source, .. } => Some(source),
            _ => None,
        }
    }
}

//! One way to the server, HTTP or a child process, under one set of verbs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::fault::Failure;
use crate::http_link::HttpLink;
use crate::message::Call;
use crate::stdio::StdioLink;

pub(crate) enum Link {
    Http(Arc<HttpLink>),
    Stdio(StdioLink),
}

/// What becomes of a listen request.
#[derive(Debug)]
pub(crate) enum ListenSignal {
    /// The URIs that the server honours.
    Acknowledged(Vec<String>),
    Refused(Failure),
    Completed,
    Broken,
}

/// An open listen request: its signals, and what ends it when dropped.
pub(crate) struct ListenFeed {
    pub(crate) signals: mpsc::Receiver<ListenSignal>,
    pub(crate) stop: ListenStop,
}

/// Ends the listen request when dropped: closes the stream, or says `notifications/cancelled`.
pub(crate) enum ListenStop {
    Http {
        _stream: DropGuard,
    },
    Stdio {
        _request: crate::stdio::ListenTicket,
    },
}

impl Link {
    /// One request, answered or failed within `deadline`.
    pub(crate) async fn call(&self, call: &Call<'_>, deadline: Duration) -> Result<Value, Failure> {
        match self {
            Self::Http(link) => link.call(call, deadline).await,
            Self::Stdio(link) => link.call(call, deadline).await,
        }
    }

    /// One notification, acknowledged (HTTP) or handed to the child (stdio) within `deadline`.
    pub(crate) async fn notify(&self, message: Vec<u8>, deadline: Duration) -> Result<(), Failure> {
        match self {
            Self::Http(link) => link.notify(message, deadline).await,
            Self::Stdio(link) => link.notify(message, deadline).await,
        }
    }

    /// Opens a listen request; failing to is the first signal.
    pub(crate) async fn listen(&self, call: &Call<'_>) -> Result<ListenFeed, Failure> {
        match self {
            Self::Http(link) => link.listen(call).await,
            Self::Stdio(link) => link.listen(call).await,
        }
    }

    /// From now on requests name this legacy version.
    pub(crate) fn speak_legacy(&self, version: &str) {
        if let Self::Http(link) = self {
            link.speak_legacy(version);
        }
    }

    /// Drops what a failed handshake left behind.
    pub(crate) async fn forget_session(&self, deadline: Duration) {
        if let Self::Http(link) = self {
            link.delete_session(deadline).await;
        }
    }
}

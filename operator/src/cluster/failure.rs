//! What the API server answered instead: one category for logs, metrics and readiness.

use kube::{core::Status, runtime::watcher};

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A stable word: `Forbidden`, `NotFound`, `Unreachable`, ...
    pub reason: &'static str,
    /// The API server's own words, which name verb, resource and namespace; never an object's content.
    pub message: String,
}

impl Failure {
    pub fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status),
            kube::Error::SerdeError(_) => Self::new("Unreadable", error),
            kube::Error::Auth(_) => Self::new("Unauthorized", error),
            _ => Self::new("Unreachable", error),
        }
    }

    pub fn of_watch(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => Self::of(error),
            watcher::Error::WatchError(status) => Self::of_status(status),
            watcher::Error::NoResourceVersion => Self::new("Unreadable", error),
        }
    }

    /// There is no such resource in this cluster.
    pub fn is_absent(&self) -> bool {
        self.reason == "NotFound"
    }

    /// The object changed or went since it was seen: nothing was written, and the watch brings what it is now.
    pub fn is_overtaken(&self) -> bool {
        matches!(self.reason, "Conflict" | "NotFound")
    }

    fn of_status(status: &Status) -> Self {
        let reason = match status.code {
            400 | 422 => "Invalid",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            429 => "TooManyRequests",
            500..=599 => "ServerError",
            _ => "Refused",
        };
        Self {
            reason,
            message: status.message.clone(),
        }
    }

    fn new(reason: &'static str, error: &dyn std::error::Error) -> Self {
        Self {
            reason,
            message: crate::sentence::chain(error),
        }
    }
}

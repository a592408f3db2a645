//! The requests that came, in order.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Requests kept; the count of a test. Benches stop the log.
const MOST: usize = 100_000;

#[derive(Debug, Clone)]
pub struct Request {
    pub at: Instant,
    /// The JSON-RPC method, or `GET` or `DELETE`.
    pub method: String,
    pub uri: Option<String>,
    pub session: Option<String>,
    pub modern: bool,
    pub authorization: Option<String>,
}

#[derive(Default)]
pub struct Log {
    stopped: AtomicBool,
    requests: Mutex<Vec<Request>>,
}

impl Log {
    pub fn add(&self, request: impl FnOnce() -> Request) {
        if self.stopped.load(Ordering::Relaxed) {
            return;
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() < MOST {
            requests.push(request());
        }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

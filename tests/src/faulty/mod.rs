//! An MCP server in this process that misbehaves on demand, in both eras at `/mcp`.
//!
//! In: resources set by the test, faults switched on and off while it runs ([`Faults`], [`ReadFault`]), reads held back
//! ([`FaultyServer::hold`]). Out: what a client does to it, counted ([`Counters`]) and logged ([`Request`]). Without a fault it
//! behaves as the specification says, and refuses a modern request whose headers do not match its body. Nothing is notified unless
//! the test says so: changing a text is silent.

mod counters;
mod faults;
mod hold;
mod http;
mod legacy;
mod log;
mod message;
mod modern;
mod read;
mod resource;
mod stream;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use counters::Counters;
pub use faults::{
    Eras, Faults, ListFault, ReadFault, SessionLoss, SubscribeFault, UnsubscribeFault,
};
pub use hold::ReadHold;
pub use log::Request;

use crate::faulty::{
    counters::Counts,
    faults::FaultState,
    log::Log,
    resource::Resources,
    stream::{Listens, Sessions},
};
use crate::report;

/// How long connections may take to end after the server was told to: a client that reads its streams needs milliseconds.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Serves until it is dropped.
pub struct FaultyServer {
    state: Arc<State>,
    addr: SocketAddr,
    serving: Option<JoinHandle<()>>,
}

/// What the HTTP side and the test share. No lock in here is held across an await.
struct State {
    resources: Resources,
    faults: FaultState,
    sessions: Sessions,
    listens: Listens,
    counts: Counts,
    log: Log,
    closing: CancellationToken,
}

impl FaultyServer {
    /// A server without faults on a free loopback port.
    pub async fn start() -> Self {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0)), Faults::default()).await
    }

    pub async fn start_with(faults: Faults) -> Self {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0)), faults).await
    }

    /// A server on an address, to come back where another was. It knows nothing of the other's sessions or resources.
    pub async fn start_on(addr: SocketAddr, faults: Faults) -> Self {
        report::real("ours: an MCP server that misbehaves on demand");
        let state = Arc::new(State {
            resources: Resources::default(),
            faults: FaultState::new(faults),
            sessions: Sessions::default(),
            listens: Listens::default(),
            counts: Counts::default(),
            log: Log::default(),
            closing: CancellationToken::new(),
        });
        let listener = TcpListener::bind(addr)
            .await
            .expect("the faulty server's address is free");
        let addr = listener
            .local_addr()
            .expect("a bound listener has an address");
        let serving = Some(tokio::spawn(http::serve(listener, Arc::clone(&state))));
        Self {
            state,
            addr,
            serving,
        }
    }

    /// Ends every connection and gives the port back, for [`FaultyServer::start_on`]. Dropping does the same without waiting.
    pub async fn stop(mut self) {
        self.close();
        if let Some(serving) = self.serving.take() {
            let ended = tokio::time::timeout(STOP_LIMIT, serving).await;
            assert!(
                ended.is_ok(),
                "the faulty server still has connections after {STOP_LIMIT:?}"
            );
        }
    }

    fn close(&self) {
        self.state.closing.cancel();
        self.state.sessions.forget(false);
        self.state.listens.drop_all();
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.addr)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sets a text, without a notification.
    pub fn set(&self, uri: &str, text: &str) {
        self.state.resources.set(uri, text);
    }

    pub fn set_many<U: AsRef<str>, T: AsRef<str>>(&self, texts: impl IntoIterator<Item = (U, T)>) {
        for (uri, text) in texts {
            self.state.resources.set(uri.as_ref(), text.as_ref());
        }
    }

    /// Sets a text and its MIME type. The default is `text/plain`.
    pub fn set_typed(&self, uri: &str, mime: &str, text: &str) {
        self.state.resources.set_typed(uri, mime, text);
    }

    /// The next read of it is not found, without a notification.
    pub fn remove(&self, uri: &str) {
        self.state.resources.remove(uri);
    }

    /// Sets a text and tells who subscribed. Returns how many streams were told.
    pub fn change(&self, uri: &str, text: &str) -> usize {
        self.set(uri, text);
        self.notify(uri)
    }

    /// Tells each stream that subscribed to the URI. Returns how many were told.
    pub fn notify(&self, uri: &str) -> usize {
        self.notify_times(uri, 1)
    }

    /// The same notification several times in a row, as servers do that repeat themselves.
    pub fn notify_times(&self, uri: &str, times: usize) -> usize {
        if self
            .state
            .faults
            .read(|faults| faults.subscribe == SubscribeFault::AckedButSilent)
        {
            return 0;
        }
        self.state.sessions.notify(uri, times) + self.state.listens.notify(uri, times)
    }

    pub fn notify_many<U: AsRef<str>>(&self, uris: impl IntoIterator<Item = U>) -> usize {
        uris.into_iter().map(|uri| self.notify(uri.as_ref())).sum()
    }

    /// Tells every open stream, subscribed or not.
    pub fn notify_everyone(&self, uri: &str) -> usize {
        self.state.sessions.notify_everyone(uri) + self.state.listens.notify_everyone(uri)
    }

    /// `notifications/resources/list_changed` to every stream that may have it.
    pub fn list_changed(&self) -> usize {
        self.state.sessions.list_changed() + self.state.listens.list_changed()
    }

    /// Any bytes on every open stream: broken frames, heartbeats, messages of other methods. The blank line is the caller's.
    pub fn send_raw(&self, bytes: &str) -> usize {
        self.state.sessions.send_raw(bytes) + self.state.listens.send_raw(bytes)
    }

    /// Catches the next read of the URI: it is answered with the content of the moment it came, when the hold is released or
    /// dropped. Several holds catch as many reads, in the order they were made.
    pub fn hold(&self, uri: &str) -> ReadHold {
        self.state.resources.hold(uri)
    }

    /// Every read of the URI fails so, until `None`.
    pub fn fail_read(&self, uri: &str, fault: Option<ReadFault>) {
        self.state.resources.fail(uri, fault);
    }

    /// Changes the faults of the server while it runs.
    pub fn faults(&self, change: impl FnOnce(&mut Faults)) {
        self.state.faults.change(change);
    }

    /// Ends all GET and listen streams abruptly. Sessions live on.
    pub fn drop_streams(&self) -> usize {
        self.state.sessions.drop_streams() + self.state.listens.drop_all()
    }

    /// Ends all listen streams with the final result the modern specification asks for. Returns how many.
    pub fn end_listens(&self) -> usize {
        self.state.listens.end_all()
    }

    /// Forgets all sessions, as a restart does, and ends their streams.
    pub fn forget_sessions(&self) -> usize {
        self.state.sessions.forget(false)
    }

    /// Forgets all sessions but leaves their streams open, alive and dead.
    pub fn forget_sessions_silently(&self) -> usize {
        self.state.sessions.forget(true)
    }

    pub fn counters(&self) -> Counters {
        self.state.counts.snapshot(
            self.state.sessions.live(),
            self.state.sessions.streams(),
            self.state.listens.live(),
        )
    }

    /// Reads of one URI so far, failed and held ones included.
    pub fn reads_of(&self, uri: &str) -> u64 {
        self.state.resources.reads_of(uri)
    }

    /// How many open streams would be told of a change of this URI now.
    pub fn subscribers_of(&self, uri: &str) -> usize {
        self.state.sessions.subscribers_of(uri) + self.state.listens.subscribers_of(uri)
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.state.log.requests()
    }

    /// Stops logging requests: for benches, where the log would be what is measured.
    pub fn without_log(&self) {
        self.state.log.stop();
    }
}

impl Drop for FaultyServer {
    fn drop(&mut self) {
        self.close();
    }
}

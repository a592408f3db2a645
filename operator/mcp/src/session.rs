//! The session: what the engine holds. Cloning is cheap; when the last clone goes, so does everything behind it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::config::{ClientLimits, Era};
use crate::error::RequestError;
use crate::event::{EndReason, EventSender};
use crate::link::Link;
use crate::list::{ListPage, Listing, decode_page};
use crate::listen::Listening;
use crate::message::Call;
use crate::read::{ReadAnswer, decode_read};
use crate::receipt::CapabilityReceipt;
use crate::watch::{self, UnwatchOutcome, WatchOutcome};

/// How long a session that was dropped rather than closed tries to tell the server.
const DROP_DEADLINE: Duration = Duration::from_secs(2);

/// What handles and background tasks share. Tasks hold this, never the handle, so that dropping handles ends them.
pub(crate) struct Shared {
    pub(crate) link: Link,
    pub(crate) receipt: CapabilityReceipt,
    pub(crate) limits: ClientLimits,
    pub(crate) events: EventSender,
    /// The link's own token.
    pub(crate) over: CancellationToken,
    pub(crate) listening: Mutex<Listening>,
    pub(crate) subscribe_missing: AtomicBool,
    stream_open: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        link: Link,
        receipt: CapabilityReceipt,
        limits: ClientLimits,
        events: EventSender,
    ) -> Self {
        let over = match &link {
            Link::Http(link) => link.over.clone(),
            Link::Stdio(link) => link.over().clone(),
        };
        // A legacy child's output is its notification stream; a modern one sends nothing until it is listened to.
        let told_anyway = matches!(link, Link::Stdio(_)) && receipt.era == Era::Legacy;
        let stream_open = AtomicBool::new(told_anyway);
        Self {
            link,
            receipt,
            limits,
            events,
            over,
            listening: Mutex::default(),
            subscribe_missing: AtomicBool::new(false),
            stream_open,
        }
    }

    /// Ends the session: the event first, then every task.
    pub(crate) fn end(&self, reason: EndReason) {
        self.events.end(reason);
        self.over.cancel();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Returns what it was before.
    pub(crate) fn set_stream_open(&self, open: bool) -> bool {
        self.stream_open.swap(open, Ordering::Relaxed)
    }

    /// Lets an error take its effect on the session.
    pub(crate) fn note(&self, error: RequestError) -> RequestError {
        if error == RequestError::SessionLost {
            self.end(EndReason::SessionLost);
        }
        error
    }

    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Value, RequestError> {
        if self.is_over() {
            return Err(RequestError::SessionLost);
        }
        self.link
            .call(call, self.limits.request_timeout)
            .await
            .map_err(|failure| self.note(failure.error))
    }
}

/// A handle on one session with one server.
#[derive(Clone)]
pub struct Session {
    handle: Arc<Handle>,
}

struct Handle(Arc<Shared>);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("receipt", self.receipt())
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            handle: Arc::new(Handle(shared)),
        }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.0
    }

    pub fn receipt(&self) -> &CapabilityReceipt {
        &self.shared().receipt
    }

    /// Whether notifications can reach us at this moment. Where not, a subscription proves nothing: poll.
    pub fn has_stream(&self) -> bool {
        self.shared().stream_open.load(Ordering::Relaxed)
    }

    /// Reads one resource. Nothing is cached: each call is a request on the wire.
    pub async fn read(&self, uri: &str) -> Result<ReadAnswer, RequestError> {
        let shared = self.shared();
        let result = shared
            .call(&Call::new(shared.receipt.era, "resources/read").about(uri))
            .await?;
        decode_read(result, shared.limits.max_content_bytes)
    }

    /// Watches these URIs in addition to those watched before. One answer per URI, in order.
    ///
    /// Legacy: `resources/subscribe` each. Modern: a new listen request with the whole set is acknowledged before the
    /// old one is closed. Callers batch: each modern call re-opens the stream.
    pub async fn watch(&self, uris: &[String]) -> Vec<WatchOutcome> {
        watch::watch(self.shared(), uris).await
    }

    /// Stops watching these URIs. One answer per URI, in order.
    pub async fn unwatch(&self, uris: &[String]) -> Vec<UnwatchOutcome> {
        watch::unwatch(self.shared(), uris).await
    }

    /// One page of `resources/list`. `None` is the first page; `Some("")` is a cursor.
    pub async fn list_resources(&self, cursor: Option<&str>) -> Result<ListPage, RequestError> {
        self.list(Listing::Resources, cursor).await
    }

    /// One page of `resources/templates/list`.
    pub async fn list_templates(&self, cursor: Option<&str>) -> Result<ListPage, RequestError> {
        self.list(Listing::Templates, cursor).await
    }

    async fn list(&self, listing: Listing, cursor: Option<&str>) -> Result<ListPage, RequestError> {
        let shared = self.shared();
        let mut call = Call::new(shared.receipt.era, listing.method());
        if let Some(cursor) = cursor {
            call = call.with("cursor", cursor);
        }
        decode_page(listing, shared.call(&call).await?)
    }

    /// Closes the session within `deadline`: DELETE (legacy HTTP), end of the listen request (modern), end of input,
    /// then the end of the whole process group (stdio).
    pub async fn close(&self, deadline: Duration) {
        let shared = self.shared();
        // Said before the link goes down, or a dying child would give the reason.
        shared.events.end(EndReason::Closed);
        // A `watch` in progress may hold the lock as long as a request may take.
        if let Ok(mut listening) = tokio::time::timeout(deadline, shared.listening.lock()).await {
            *listening = Listening::default();
        }
        match &shared.link {
            Link::Http(link) => link.delete_session(deadline).await,
            Link::Stdio(link) => link.close(deadline).await,
        }
        shared.end(EndReason::Closed);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.0);
        let lives = !shared.is_over();
        shared.end(EndReason::Closed);
        // The server would keep the session for ever otherwise. The child's group ends by the token alone.
        if lives
            && let Link::Http(link) = &shared.link
            && link.in_session()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let link = Arc::clone(link);
            runtime.spawn(async move { link.delete_session(DROP_DEADLINE).await });
        }
    }
}

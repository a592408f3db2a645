//! A connected session: events, timers and answers in; reads, subscriptions and closes out.
//!
//! Holds: reads of a resource start only after its subscription was answered; after a gap everything
//! is subscribed again first and read after; whatever names a generation that is gone changes nothing.

mod events;
mod plan;
mod settled;

use std::{collections::HashMap, future::Future, pin::Pin, sync::Arc, time::Duration};

use fencepost_ledger::{ResourceId, backoff::Backoff, quiet::QuietWindow};
use fencepost_mcp::{EndReason, Events, Session};
use fencepost_store::{SessionKey, StoreError, TombstonePolicy};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Context,
    limits::ReadPermit,
    read::ReadDone,
    subscribe::Watched,
    supervisor::{ServerRuntime, SessionSpec},
    table::Table,
    untrusted,
};

/// Rows a statement at most: keeps a statement's arrays within a few hundred KiB.
const CHUNK: usize = 1000;
/// Answers waiting for the loop; a sender waits when it is full.
const ANSWERS: usize = 1024;
/// Between retries of a read that brought no usable answer.
const READ_AGAIN: Backoff = Backoff {
    first: Duration::from_millis(250),
    cap: Duration::from_secs(30),
};
/// Before a resource is tried again that is still closing, or that the ledger refused.
const REOPEN_AGAIN: Duration = Duration::from_secs(1);
/// Tries to reopen before the session itself is ended to reconcile what stays unknown.
const REOPEN_TRIES: u32 = 10;
/// A repeat later than this after a read is a change of its own, not a duplicate.
const REPEAT_WITHIN: Duration = Duration::from_secs(2);
/// When this many resources, and this share of the session's, vanish at once, tombstones are held.
const HOLD: TombstonePolicy = TombstonePolicy {
    hold_share: 0.3,
    hold_min: 5,
};

/// Why a connected session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// The manifests no longer want it, or the process ends.
    Stopped,
    LeaseLost,
    /// The server or the wire ended it.
    Server(EndReason),
    /// The credential was refused.
    Unauthorized,
    /// A generation stayed `UNSUBSCRIBE_UNKNOWN` while its resource is wanted again.
    Reconcile,
    DatabaseAway,
}

impl EndCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "STOPPED",
            Self::LeaseLost => "LEASE_LOST",
            Self::Server(reason) => reason.as_str(),
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Reconcile => "RECONCILE",
            Self::DatabaseAway => "DATABASE_AWAY",
        }
    }
}

type Acquiring = Pin<Box<dyn Future<Output = Option<ReadPermit>> + Send>>;

/// The loop's state.
pub struct Connected {
    context: Context,
    key: SessionKey,
    server: Arc<ServerRuntime>,
    client: Session,
    server_version: Arc<str>,
    table: Table,
    quiet: QuietWindow,
    done: (mpsc::Sender<ReadDone>, mpsc::Receiver<ReadDone>),
    watched: (mpsc::Sender<Watched>, mpsc::Receiver<Watched>),
    tasks: TaskTracker,
    /// Cancels the tasks when the session ends.
    ended: CancellationToken,
    reopen_at: Option<Instant>,
    reopen_tries: u32,
    flags: HashMap<ResourceId, (bool, bool)>,
    /// It was said that tombstones are held; said again only after one was confirmed.
    told_of_hold: bool,
}

impl Connected {
    pub fn new(
        context: Context,
        key: SessionKey,
        server: Arc<ServerRuntime>,
        client: Session,
    ) -> Self {
        let receipt = client.receipt();
        let word = |said: &str| untrusted::text(said, untrusted::MAX_WORD_CHARS);
        let server_version = format!(
            "{}/{}",
            word(&receipt.server_name),
            word(&receipt.server_version)
        );
        Self {
            context,
            key,
            server,
            client,
            server_version: server_version.into(),
            table: Table::new(),
            quiet: QuietWindow::default(),
            done: mpsc::channel(ANSWERS),
            watched: mpsc::channel(ANSWERS),
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
            reopen_at: None,
            reopen_tries: 0,
            flags: HashMap::new(),
            told_of_hold: false,
        }
    }

    /// Runs until the session is over. The caller closes the client and ends the session in the ledger.
    pub async fn run(
        mut self,
        mut events: Events,
        mut spec: watch::Receiver<Arc<SessionSpec>>,
        lease_lost: CancellationToken,
        stop: CancellationToken,
    ) -> EndCause {
        let cause = match self.serve(&mut events, &mut spec, &lease_lost, &stop).await {
            Ok(cause) => cause,
            Err(error) => {
                tracing::warn!(
                    category = error.category(),
                    "the ledger could not be written"
                );
                EndCause::DatabaseAway
            }
        };
        if cause == EndCause::Stopped {
            // Nothing is wanted any more, or the process ends and its successor wants the same.
            let forgotten = spec.borrow().resources.is_empty();
            self.close_all(forgotten).await;
        }
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        cause
    }

    async fn serve(
        &mut self,
        events: &mut Events,
        spec: &mut watch::Receiver<Arc<SessionSpec>>,
        lease_lost: &CancellationToken,
        stop: &CancellationToken,
    ) -> Result<EndCause, StoreError> {
        let wanted = Arc::clone(&spec.borrow_and_update());
        self.apply(&wanted).await?;
        let mut acquiring: Option<Acquiring> = None;
        loop {
            if acquiring.is_none() && self.table.has_ready() {
                let server = Arc::clone(&self.server);
                acquiring = Some(Box::pin(async move { server.limits.acquire().await }));
            }
            let timer = self
                .table
                .next_timer()
                .into_iter()
                .chain(self.reopen_at)
                .min();
            tokio::select! {
                () = stop.cancelled() => return Ok(EndCause::Stopped),
                () = lease_lost.cancelled() => return Ok(EndCause::LeaseLost),
                event = events.next() => {
                    if let Some(cause) = self.on_event(event) {
                        return Ok(cause);
                    }
                }
                Some(done) = self.done.1.recv() => {
                    if let Some(cause) = self.on_done(done).await? {
                        return Ok(cause);
                    }
                }
                Some(first) = self.watched.1.recv() => self.on_watched(first).await?,
                Some(permit) = async { acquiring.as_mut()?.await }, if acquiring.is_some() => {
                    acquiring = None;
                    self.dispatch(permit);
                }
                () = async { sleep_until(timer.unwrap_or_else(Instant::now)).await }, if timer.is_some() => {
                    self.table.fire();
                    if self.reopen_at.is_some_and(|at| at <= Instant::now()) {
                        self.reopen_at = None;
                        self.reopen_tries += 1;
                        if self.reopen_tries > REOPEN_TRIES {
                            return Ok(EndCause::Reconcile);
                        }
                        let wanted = Arc::clone(&spec.borrow());
                        self.apply(&wanted).await?;
                    }
                }
                changed = spec.changed() => {
                    if changed.is_err() {
                        return Ok(EndCause::Stopped);
                    }
                    let wanted = Arc::clone(&spec.borrow_and_update());
                    self.reopen_tries = 0;
                    self.apply(&wanted).await?;
                }
            }
            self.flush_flags().await?;
        }
    }

    /// A resource that the ledger doesn't let be watched now is tried again: the next manifest or lease may
    /// say why it doesn't, and neither need come.
    fn reopen_later(&mut self) {
        self.reopen_at
            .get_or_insert_with(|| Instant::now() + REOPEN_AGAIN);
    }

    async fn flush_flags(&mut self) -> Result<(), StoreError> {
        if self.flags.is_empty() {
            return Ok(());
        }
        let items: Vec<_> = std::mem::take(&mut self.flags)
            .into_iter()
            .map(|(id, (volatile, proven))| (id, volatile, proven))
            .collect();
        self.context.store.set_flags(&items).await
    }
}

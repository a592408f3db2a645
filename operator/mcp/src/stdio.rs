//! stdio: newline-delimited messages with a child process. One task reads, one writes; requests wait in a table.
//!
//! A line that cannot be decoded fails the request it belongs to; a line that is no message is counted. When the child
//! closes its output the session is over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::config::ClientLimits;
use crate::error::{ConnectError, RequestError};
use crate::event::{EndReason, EventSender};
use crate::fault::{Failure, settle};
use crate::id_scan::IdScan;
use crate::inbox::absorb;
use crate::link::{ListenFeed, ListenSignal, ListenStop};
use crate::listen::{Heard, acknowledged_request, hear};
use crate::message::{AnswerId, Call, Incoming, Outcome, decode, notification};
use crate::stdio_child::{ChildProcess, LAST_WORDS};

/// Lines waiting for a child that does not read; past it requests wait, within their deadlines.
const WRITE_QUEUE: usize = 64;

#[derive(Clone)]
pub(crate) struct StdioLink(Arc<Inner>);

struct Inner {
    lines: mpsc::Sender<Vec<u8>>,
    table: Table,
    next_id: AtomicU64,
    child: ChildProcess,
    over: CancellationToken,
}

/// Who waits for what.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    closed: bool,
    requests: HashMap<u64, oneshot::Sender<Result<Outcome, Failure>>>,
    listens: HashMap<u64, mpsc::Sender<ListenSignal>>,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a request out of the table when its caller gives up.
struct Ticket {
    table: Table,
    id: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.table.lock().requests.remove(&self.id);
    }
}

/// Cancels a listen request when dropped.
pub(crate) struct ListenTicket {
    table: Table,
    lines: mpsc::Sender<Vec<u8>>,
    id: u64,
}

impl Drop for ListenTicket {
    fn drop(&mut self) {
        if self.table.lock().listens.remove(&self.id).is_some() {
            // If the queue is full the child does not read, and would not read this either.
            let _ = self.lines.try_send(cancelled(self.id));
        }
    }
}

fn cancelled(id: u64) -> Vec<u8> {
    notification("notifications/cancelled", Some(json!({"requestId": id})))
}

impl StdioLink {
    pub(crate) fn spawn(
        command: &str,
        args: &[String],
        env: &[(String, String)],
        limits: &ClientLimits,
        events: EventSender,
    ) -> Result<Self, ConnectError> {
        let over = CancellationToken::new();
        let (child, stdin, stdout) = ChildProcess::start(command, args, env, over.clone())?;
        let (lines, queue) = mpsc::channel(WRITE_QUEUE);
        let table = Table::default();
        let reader = Reader {
            table: table.clone(),
            events,
            replies: lines.clone(),
            limit: limits.max_message_bytes,
        };
        tokio::spawn(write_lines(stdin, queue, over.clone()));
        tokio::spawn(reader.run(stdout, over.clone()));
        Ok(Self(Arc::new(Inner {
            lines,
            table,
            next_id: AtomicU64::new(1),
            child,
            over,
        })))
    }

    pub(crate) fn over(&self) -> &CancellationToken {
        &self.0.over
    }

    pub(crate) async fn call(&self, call: &Call<'_>, deadline: Duration) -> Result<Value, Failure> {
        let id = self.next_id();
        let (answer, answered) = oneshot::channel();
        let ticket = self.enter(id, |waiting| {
            waiting.requests.insert(id, answer);
        })?;
        let exchange = async {
            self.write(call.encode(id)).await?;
            answered
                .await
                .unwrap_or_else(|_| Err(RequestError::Disconnected.into()))
        };
        let Ok(outcome) = tokio::time::timeout(deadline, exchange).await else {
            // `initialize` must not be cancelled; a probe that is not understood need not be.
            if call.method.starts_with("resources/") {
                let _ = self.0.lines.try_send(cancelled(id));
            }
            return Err(RequestError::Timeout.into());
        };
        drop(ticket);
        settle(call, false, outcome?)
    }

    pub(crate) async fn notify(&self, message: Vec<u8>, deadline: Duration) -> Result<(), Failure> {
        tokio::time::timeout(deadline, self.write(message))
            .await
            .unwrap_or_else(|_| Err(RequestError::Timeout.into()))
    }

    pub(crate) async fn listen(&self, call: &Call<'_>) -> Result<ListenFeed, Failure> {
        let id = self.next_id();
        let (tell, signals) = mpsc::channel(4);
        self.enter(id, |waiting| {
            waiting.listens.insert(id, tell);
        })?;
        let request = ListenTicket {
            table: self.0.table.clone(),
            lines: self.0.lines.clone(),
            id,
        };
        self.write(call.encode(id)).await?;
        Ok(ListenFeed {
            signals,
            stop: ListenStop::Stdio { _request: request },
        })
    }

    /// Ends the child and all that it started within `deadline`.
    pub(crate) async fn close(&self, deadline: Duration) {
        self.0.child.allow(deadline);
        self.0.over.cancel();
        self.0.child.gone().await;
    }

    fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn enter(&self, id: u64, enter: impl FnOnce(&mut Waiting)) -> Result<Ticket, Failure> {
        let mut waiting = self.0.table.lock();
        if waiting.closed {
            return Err(RequestError::Disconnected.into());
        }
        enter(&mut waiting);
        drop(waiting);
        Ok(Ticket {
            table: self.0.table.clone(),
            id,
        })
    }

    async fn write(&self, message: Vec<u8>) -> Result<(), Failure> {
        self.0
            .lines
            .send(message)
            .await
            .map_err(|_| RequestError::Disconnected.into())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// Ends with the session, and by ending closes the child's input.
async fn write_lines(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    over: CancellationToken,
) {
    let write = async {
        while let Some(mut line) = queue.recv().await {
            line.push(b'\n');
            if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = over.cancelled() => {}
        () = write => {
            // A child that does not read any more cannot be asked anything: over, once its last words are heard.
            let _ = tokio::time::timeout(LAST_WORDS, over.cancelled()).await;
            over.cancel();
        }
    }
    // What was queued before the end, `notifications/cancelled` for one, still goes out if the child reads.
    queue.close();
    let rest = async {
        while let Some(mut line) = queue.recv().await {
            line.push(b'\n');
            let _ = stdin.write_all(&line).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(100), rest).await;
}

struct Reader {
    table: Table,
    events: EventSender,
    replies: mpsc::Sender<Vec<u8>>,
    limit: usize,
}

impl Reader {
    async fn run(self, stdout: ChildStdout, over: CancellationToken) {
        tokio::select! {
            () = over.cancelled() => {}
            () = self.read_lines(stdout) => {}
        }
        let (requests, listens) = {
            let mut waiting = self.table.lock();
            waiting.closed = true;
            (
                std::mem::take(&mut waiting.requests),
                std::mem::take(&mut waiting.listens),
            )
        };
        // The session's end first: a failed request must not be known before it.
        self.events.end(EndReason::ChildExited);
        over.cancel();
        drop(listens);
        for (_, waiter) in requests {
            let _ = waiter.send(Err(RequestError::Disconnected.into()));
        }
    }

    async fn read_lines(&self, stdout: ChildStdout) {
        let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
        let mut line = Vec::new();
        // Set while the rest of a line that is too long is skipped.
        let mut skipping: Option<IdScan> = None;
        loop {
            let Ok(chunk) = stdout.fill_buf().await else {
                return;
            };
            if chunk.is_empty() {
                return;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            let used = end.map_or(chunk.len(), |end| end + 1);
            match &mut skipping {
                Some(scan) => scan.feed(piece),
                None if line.len() + piece.len() > self.limit => {
                    let mut scan = IdScan::default();
                    scan.feed(&line);
                    scan.feed(piece);
                    line = Vec::new();
                    skipping = Some(scan);
                }
                None => line.extend_from_slice(piece),
            }
            stdout.consume(used);
            if end.is_some() {
                match skipping.take() {
                    Some(scan) => {
                        self.fail(scan.found(), &RequestError::TooLarge { limit: self.limit });
                    }
                    None => self.take_line(&line).await,
                }
                line.clear();
            }
        }
    }

    async fn take_line(&self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        for message in decode(line) {
            match message {
                Incoming::Answer { id, outcome } => self.answer(id, outcome).await,
                Incoming::Notification {
                    ref method,
                    ref params,
                } => match acknowledged_request(method, params).and_then(|id| self.listen_of(id)) {
                    Some((id, listen)) => signal(&listen, id, message).await,
                    None => self.pass_on(message),
                },
                Incoming::Junk => {
                    let mut scan = IdScan::default();
                    scan.feed(line);
                    self.fail(
                        scan.found(),
                        &RequestError::protocol("the answer's line is not JSON or not UTF-8"),
                    );
                }
                Incoming::Request { .. } => self.pass_on(message),
            }
        }
    }

    async fn answer(&self, id: AnswerId, outcome: Outcome) {
        let request = {
            let mut waiting = self.table.lock();
            let id = match id {
                AnswerId::Ours(id) => Some(id),
                // An error that names no request: clear only while there is just one.
                AnswerId::Absent if waiting.requests.len() == 1 => {
                    waiting.requests.keys().next().copied()
                }
                AnswerId::Absent => None,
            };
            id.and_then(|id| waiting.requests.remove(&id))
        };
        match request {
            Some(waiter) => {
                let _ = waiter.send(Ok(outcome));
            }
            None => match self.listen_of(id) {
                Some((id, listen)) => {
                    signal(
                        &listen,
                        id,
                        Incoming::Answer {
                            id: AnswerId::Ours(id),
                            outcome,
                        },
                    )
                    .await;
                }
                None => self.pass_on(Incoming::Answer { id, outcome }),
            },
        }
    }

    /// The listen request meant; one that is not named is meant while it is the only one.
    fn listen_of(&self, id: AnswerId) -> Option<(u64, mpsc::Sender<ListenSignal>)> {
        let waiting = self.table.lock();
        match id {
            AnswerId::Ours(id) => waiting.listens.get(&id).map(|listen| (id, listen.clone())),
            AnswerId::Absent if waiting.listens.len() == 1 => waiting
                .listens
                .iter()
                .next()
                .map(|(id, listen)| (*id, listen.clone())),
            AnswerId::Absent => None,
        }
    }

    fn pass_on(&self, message: Incoming) {
        if let Some(reply) = absorb(&self.events, message) {
            // A child that fills our queue with its requests gets no answer to them.
            let _ = self.replies.try_send(reply);
        }
    }

    fn fail(&self, id: Option<u64>, error: &RequestError) {
        match id.and_then(|id| self.table.lock().requests.remove(&id)) {
            Some(waiter) => {
                let _ = waiter.send(Err(error.clone().into()));
            }
            None => self.pass_on(Incoming::Junk),
        }
    }
}

async fn signal(listen: &mpsc::Sender<ListenSignal>, id: u64, message: Incoming) {
    let call = Call::new(crate::Era::Modern, crate::listen::LISTEN);
    if let Heard::Signal(signal) = hear(&call, id, message) {
        let _ = listen.send(signal).await;
    }
}

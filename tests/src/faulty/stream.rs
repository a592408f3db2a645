//! Who is told of what: legacy sessions with their GET stream, modern listens.
//!
//! A notification for a session without an open stream is lost, as it is on most servers. Streams are unbounded queues: a storm
//! must not wait for the client that is being tried.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::{Body, Bytes};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{IntervalStream, UnboundedReceiverStream};

use crate::faulty::message;

/// Between keepalive comments on a stream, as the TypeScript and Python SDKs send them.
const KEEPALIVE: Duration = Duration::from_secs(15);

type Sender = mpsc::UnboundedSender<Bytes>;

/// A new stream: where to send, and the body that carries it. The body ends when all senders are gone.
pub fn open() -> (Sender, Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let data = UnboundedReceiverStream::new(receiver)
        .map(Some)
        .chain(stream::once(async { None }));
    let start = tokio::time::Instant::now() + KEEPALIVE;
    let keepalive = IntervalStream::new(tokio::time::interval_at(start, KEEPALIVE))
        .map(|_| Some(Bytes::from_static(b": keepalive\n\n")));
    let whole =
        stream::select(data, keepalive).take_while(|bytes| std::future::ready(bytes.is_some()));
    (
        sender,
        Body::from_stream(ok(whole.filter_map(std::future::ready))),
    )
}

fn ok(bytes: impl Stream<Item = Bytes>) -> impl Stream<Item = Result<Bytes, io::Error>> {
    bytes.map(Ok)
}

#[derive(Default)]
pub struct Session {
    pub subscribed: HashSet<String>,
    stream: Option<Sender>,
    /// False until `initialized` was processed.
    pub initialized: bool,
}

impl Session {
    fn live(&self) -> Option<&Sender> {
        self.stream.as_ref().filter(|stream| !stream.is_closed())
    }
}

#[derive(Default)]
struct SessionTable {
    sessions: HashMap<String, Session>,
    /// Streams of forgotten sessions, kept open.
    dead: Vec<Sender>,
}

#[derive(Default)]
pub struct Sessions(Mutex<SessionTable>);

/// The session has a stream that is still read.
pub struct StreamTaken;

impl Sessions {
    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, id: String) {
        self.table().sessions.insert(id, Session::default());
    }

    /// `None` for a session that is not known.
    pub fn with<T>(&self, id: &str, look: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.table().sessions.get_mut(id).map(look)
    }

    pub fn close(&self, id: &str) -> bool {
        self.table().sessions.remove(id).is_some()
    }

    /// `None` for a session that is not known.
    pub fn open_stream(&self, id: &str) -> Option<Result<Body, StreamTaken>> {
        self.with(id, |session| {
            if session.live().is_some() {
                return Err(StreamTaken);
            }
            let (sender, body) = open();
            session.stream = Some(sender);
            Ok(body)
        })
    }

    pub fn notify(&self, uri: &str, times: usize) -> usize {
        let bytes = Bytes::from(message::event(&message::updated(uri, None)));
        self.each_stream(|session, stream| {
            session.subscribed.contains(uri) && send(stream, &bytes, times)
        })
    }

    pub fn notify_everyone(&self, uri: &str) -> usize {
        self.send_raw(&message::event(&message::updated(uri, None)))
    }

    pub fn list_changed(&self) -> usize {
        self.send_raw(&message::event(&message::list_changed(None)))
    }

    pub fn send_raw(&self, bytes: &str) -> usize {
        let bytes = Bytes::from(bytes.to_owned());
        self.each_stream(|_, stream| send(stream, &bytes, 1))
    }

    pub fn subscribers_of(&self, uri: &str) -> usize {
        self.each_stream(|session, _| session.subscribed.contains(uri))
    }

    pub fn streams(&self) -> usize {
        self.each_stream(|_, _| true)
    }

    pub fn live(&self) -> usize {
        self.table().sessions.len()
    }

    pub fn drop_streams(&self) -> usize {
        self.table()
            .sessions
            .values_mut()
            .filter_map(|session| session.stream.take())
            .count()
    }

    pub fn forget(&self, keep_streams: bool) -> usize {
        let mut table = self.table();
        let forgotten = std::mem::take(&mut table.sessions);
        let count = forgotten.len();
        table.dead.clear();
        if keep_streams {
            table
                .dead
                .extend(forgotten.into_values().filter_map(|session| session.stream));
        }
        count
    }

    fn each_stream(&self, told: impl Fn(&Session, &Sender) -> bool) -> usize {
        let table = self.table();
        table
            .sessions
            .values()
            .filter(|session| session.live().is_some_and(|stream| told(session, stream)))
            .count()
    }
}

struct Listen {
    /// The id of the listen request, as JSON.
    id: String,
    uris: HashSet<String>,
    list_changed: bool,
    stream: Sender,
}

#[derive(Default)]
pub struct Listens(Mutex<Vec<Listen>>);

impl Listens {
    /// The listens whose client still reads.
    fn open(&self) -> MutexGuard<'_, Vec<Listen>> {
        let mut listens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listens.retain(|listen| !listen.stream.is_closed());
        listens
    }

    /// Begins a listen whose first message is the acknowledgement.
    pub fn add(
        &self,
        id: String,
        uris: HashSet<String>,
        list_changed: bool,
        acknowledgement: &str,
    ) -> Body {
        let (stream, body) = open();
        let mut listens = self.open();
        send(&stream, &Bytes::from(message::event(acknowledgement)), 1);
        listens.push(Listen {
            id,
            uris,
            list_changed,
            stream,
        });
        body
    }

    pub fn notify(&self, uri: &str, times: usize) -> usize {
        self.each(|listen| {
            listen.uris.contains(uri)
                && send(
                    &listen.stream,
                    &Bytes::from(message::event(&message::updated(uri, Some(&listen.id)))),
                    times,
                )
        })
    }

    pub fn notify_everyone(&self, uri: &str) -> usize {
        self.each(|listen| {
            send(
                &listen.stream,
                &Bytes::from(message::event(&message::updated(uri, Some(&listen.id)))),
                1,
            )
        })
    }

    pub fn list_changed(&self) -> usize {
        self.each(|listen| {
            listen.list_changed
                && send(
                    &listen.stream,
                    &Bytes::from(message::event(&message::list_changed(Some(&listen.id)))),
                    1,
                )
        })
    }

    pub fn send_raw(&self, bytes: &str) -> usize {
        let bytes = Bytes::from(bytes.to_owned());
        self.each(|listen| send(&listen.stream, &bytes, 1))
    }

    pub fn subscribers_of(&self, uri: &str) -> usize {
        self.each(|listen| listen.uris.contains(uri))
    }

    pub fn live(&self) -> usize {
        self.open().len()
    }

    pub fn drop_all(&self) -> usize {
        self.open().drain(..).count()
    }

    pub fn end_all(&self) -> usize {
        let mut open = self.open();
        let ended = open.drain(..).map(|listen| {
            let meta = format!(
                r#"{{"io.modelcontextprotocol/subscriptionId":{}}}"#,
                listen.id
            );
            let result = message::result(
                &listen.id,
                &format!(r#"{{"resultType":"complete","_meta":{meta}}}"#),
            );
            send(&listen.stream, &Bytes::from(message::event(&result)), 1)
        });
        ended.count()
    }

    fn each(&self, told: impl Fn(&Listen) -> bool) -> usize {
        self.open().iter().filter(|listen| told(listen)).count()
    }
}

fn send(stream: &Sender, bytes: &Bytes, times: usize) -> bool {
    (0..times).all(|_| stream.send(bytes.clone()).is_ok())
}

//! The switches. Each stands for something servers were seen to do; the default of each is what the specification asks for.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eras {
    Both,
    /// A modern request is answered 400 without a modern error.
    Legacy,
    /// `initialize` is answered with unsupported version.
    Modern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscribeFault {
    None,
    /// The capability is not declared; the request is an unknown method.
    NotOffered,
    /// The capability is declared; the request is an unknown method.
    MethodNotFound,
    /// Acknowledged, and nothing is ever told.
    AckedButSilent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsubscribeFault {
    None,
    /// Acknowledged, and updates go on.
    KeepsNotifying,
    NeverAnswered,
}

/// How a request of an unknown session is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionLoss {
    NotFound,
    /// 400 and a JSON-RPC error without an id, as the official reference server does.
    BadRequestWithoutId,
    /// 200 and a JSON-RPC error.
    OkWithError,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListFault {
    None,
    /// Every page names the same next cursor.
    CursorNeverAdvances,
    /// This page (from 1) answers with this HTTP status.
    PageStatus {
        page: usize,
        status: u16,
    },
    /// This page (from 1) answers with this JSON-RPC error.
    PageError {
        page: usize,
        code: i64,
    },
    /// The first item of every page has no name.
    NamelessItem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFault {
    /// Any status, with a text body.
    Status(u16),
    /// 401 with a challenge header.
    Unauthorized,
    /// 403 with an insufficient-scope challenge.
    Forbidden,
    /// 429, with a Retry-After as it stands here.
    TooManyRequests {
        retry_after: Option<String>,
    },
    /// 200 and a JSON-RPC error that speaks of a rate limit.
    RateLimitedInBody,
    /// A JSON-RPC error.
    Error {
        code: i64,
        message: String,
    },
    /// The not-found error of the era: -32002 or -32602.
    NotFound,
    /// No answer until the client goes away.
    NoAnswer,
    /// Contents and an error in one answer.
    ResultAndError,
    EmptyContents,
    /// The answer of another resource.
    WrongUri,
    /// A modern answer that asks for user input.
    InputRequired,
    /// 307 to this location.
    Redirect(String),
    /// 202 without a body.
    Accepted,
    /// The connection is cut in the middle of the answer.
    Cut,
}

#[derive(Debug, Clone)]
pub struct Faults {
    pub eras: Eras,
    pub list_changed: bool,
    pub subscribe: SubscribeFault,
    /// The subscribe request of this number (from 1, over all sessions) is never answered.
    pub swallow_subscribe: Option<u64>,
    pub unsubscribe: UnsubscribeFault,
    /// A listen acknowledges only the first so many URIs.
    pub listen_accepts: Option<usize>,
    /// How a request with an unknown session is answered.
    pub session_loss: SessionLoss,
    /// GET is answered with this status.
    pub refuse_get: Option<u16>,
    /// POST is answered with this status, whatever it asks.
    pub refuse_post: Option<u16>,
    pub list: ListFault,
    pub list_delay: Duration,
    pub page_size: usize,
    /// Every read takes at least this long.
    pub read_delay: Duration,
    /// Every read fails so.
    pub read: Option<ReadFault>,
    /// Requests must bear `Authorization: Bearer <this>`; others are 401 with a challenge.
    pub bearer: Option<String>,
    /// Answers to POST come as an event stream.
    pub answer_as_stream: bool,
    /// `initialized` is processed so late; requests before that are -32600.
    pub strict_initialized: Option<Duration>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            eras: Eras::Both,
            list_changed: true,
            subscribe: SubscribeFault::None,
            swallow_subscribe: None,
            unsubscribe: UnsubscribeFault::None,
            listen_accepts: None,
            session_loss: SessionLoss::NotFound,
            refuse_get: None,
            refuse_post: None,
            list: ListFault::None,
            list_delay: Duration::ZERO,
            page_size: 100,
            read_delay: Duration::ZERO,
            read: None,
            bearer: None,
            answer_as_stream: false,
            strict_initialized: None,
        }
    }
}

pub struct FaultState(RwLock<Faults>);

impl FaultState {
    pub fn new(faults: Faults) -> Self {
        Self(RwLock::new(faults))
    }

    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn read<T>(&self, look: impl FnOnce(&Faults) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

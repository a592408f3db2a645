//! What a session tells by itself: a bounded queue from the wire to the engine.
//!
//! Order is the wire's. When the engine falls behind, what does not fit folds into one `Gap(Lagged)`: a gap makes
//! everything dirty, so nothing is lost but detail. `Ended` comes exactly once, last.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// Something the server or the wire did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// `notifications/resources/updated`, from whichever stream it came.
    Updated { uri: String },
    /// `notifications/resources/list_changed`.
    ListChanged,
    /// A notification stream is open.
    StreamOpened,
    /// A notification stream could not be opened, or ended. `retry_in` zero: it is not tried again by itself.
    StreamFailed { reason: String, retry_in: Duration },
    /// The session goes on, but notifications may have been missed: subscribe again, read again.
    Gap { reason: GapReason },
    /// The session is over. Connect again for a new one.
    Ended { reason: EndReason },
    /// Something that means nothing to us, to be counted.
    Ignored { kind: &'static str },
}

/// Why notifications may have been missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GapReason {
    /// The legacy GET stream was opened after the session had begun, or again after an end.
    StreamReopened,
    /// The engine fell behind and events were folded.
    Lagged,
    /// A new listen stream honours less than the one before it.
    SubsetShrank,
}

impl GapReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StreamReopened => "STREAM_REOPENED",
            Self::Lagged => "LAGGED",
            Self::SubsetShrank => "SUBSET_SHRANK",
        }
    }
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndReason {
    /// The server does not know the session any more.
    SessionLost,
    /// A modern listen stream ended with its result.
    ListenCompleted,
    /// A modern listen stream broke off.
    ListenBroken,
    /// The child process ended or closed its output.
    ChildExited,
    /// We closed it.
    Closed,
}

impl EndReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionLost => "SESSION_LOST",
            Self::ListenCompleted => "LISTEN_COMPLETED",
            Self::ListenBroken => "LISTEN_BROKEN",
            Self::ChildExited => "CHILD_EXITED",
            Self::Closed => "CLOSED",
        }
    }
}

struct Queue {
    waiting: VecDeque<SessionEvent>,
    capacity: usize,
    lagged: bool,
    ended: Option<EndReason>,
    told_end: bool,
}

struct Channel {
    queue: Mutex<Queue>,
    wake: Notify,
}

impl Channel {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wire's end of the queue.
#[derive(Clone)]
pub(crate) struct EventSender(Arc<Channel>);

/// The engine's end of the queue.
pub struct Events(Arc<Channel>);

pub(crate) fn event_channel(capacity: usize) -> (EventSender, Events) {
    let channel = Arc::new(Channel {
        queue: Mutex::new(Queue {
            waiting: VecDeque::new(),
            capacity: capacity.max(1),
            lagged: false,
            ended: None,
            told_end: false,
        }),
        wake: Notify::new(),
    });
    (EventSender(Arc::clone(&channel)), Events(channel))
}

impl EventSender {
    pub(crate) fn send(&self, event: SessionEvent) {
        let mut queue = self.0.queue();
        // Once lagging, everything up to the gap's delivery is covered by the gap.
        if queue.ended.is_some() || queue.lagged {
            return;
        }
        if queue.waiting.len() < queue.capacity {
            queue.waiting.push_back(event);
        } else if matches!(event, SessionEvent::Ignored { .. }) {
            return;
        } else {
            queue.lagged = true;
        }
        drop(queue);
        self.0.wake.notify_one();
    }

    /// Returns whether this was the first end.
    pub(crate) fn end(&self, reason: EndReason) -> bool {
        let mut queue = self.0.queue();
        let first = queue.ended.is_none();
        if first {
            queue.ended = Some(reason);
        }
        drop(queue);
        self.0.wake.notify_one();
        first
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// The next event; `None` after `Ended`. Safe to drop while waiting.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        loop {
            match self.take_one() {
                Taken::Event(event) => return Some(event),
                Taken::Over => return None,
                Taken::Nothing => {}
            }
            self.0.wake.notified().await;
        }
    }

    fn take_one(&self) -> Taken {
        let mut queue = self.0.queue();
        if let Some(event) = queue.waiting.pop_front() {
            return Taken::Event(event);
        }
        if queue.lagged {
            queue.lagged = false;
            return Taken::Event(SessionEvent::Gap {
                reason: GapReason::Lagged,
            });
        }
        match queue.ended {
            Some(_) if queue.told_end => Taken::Over,
            Some(reason) => {
                queue.told_end = true;
                Taken::Event(SessionEvent::Ended { reason })
            }
            None => Taken::Nothing,
        }
    }
}

enum Taken {
    Event(SessionEvent),
    Nothing,
    Over,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn updated(n: usize) -> SessionEvent {
        SessionEvent::Updated {
            uri: format!("test://{n}"),
        }
    }

    #[tokio::test]
    async fn overflow_folds_into_one_gap_after_what_fitted() {
        let (sender, mut events) = event_channel(2);
        for n in 0..10_000 {
            sender.send(updated(n));
        }
        assert_eq!(events.next().await.unwrap(), updated(0));
        // Room again, but the gap has not been told: still folded.
        sender.send(updated(7));
        assert_eq!(events.next().await.unwrap(), updated(1));
        assert_eq!(
            events.next().await.unwrap(),
            SessionEvent::Gap {
                reason: GapReason::Lagged
            }
        );
        sender.send(updated(8));
        assert_eq!(events.next().await.unwrap(), updated(8));
    }

    #[tokio::test]
    async fn junk_never_causes_a_gap() {
        let (sender, mut events) = event_channel(1);
        sender.send(updated(0));
        sender.send(SessionEvent::Ignored { kind: "junk_frame" });
        sender.end(EndReason::Closed);
        assert_eq!(events.next().await.unwrap(), updated(0));
        assert_eq!(
            events.next().await.unwrap(),
            SessionEvent::Ended {
                reason: EndReason::Closed
            }
        );
    }

    #[tokio::test]
    async fn the_end_comes_once_and_last() {
        let (sender, mut events) = event_channel(4);
        sender.send(updated(0));
        assert!(sender.end(EndReason::SessionLost));
        assert!(!sender.end(EndReason::Closed));
        sender.send(updated(1));
        assert_eq!(events.next().await.unwrap(), updated(0));
        assert_eq!(
            events.next().await.unwrap(),
            SessionEvent::Ended {
                reason: EndReason::SessionLost
            }
        );
        assert_eq!(events.next().await, None);
    }
}

//! What was done to the server, counted from its start.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot. Requests count when they come, not when they are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    pub posts: u64,
    pub initializes: u64,
    pub discovers: u64,
    pub lists: u64,
    pub reads: u64,
    pub reads_in_flight: u64,
    /// The most reads that were ever in flight at once.
    pub reads_at_once: u64,
    pub subscribes: u64,
    pub unsubscribes: u64,
    /// `subscriptions/listen` requests.
    pub listens: u64,
    /// GET requests.
    pub gets: u64,
    /// DELETE requests that ended a session.
    pub deletes: u64,
    pub sessions_live: usize,
    pub streams_live: usize,
    pub listens_live: usize,
}

#[derive(Debug, Default)]
pub struct Counts {
    pub posts: AtomicU64,
    pub initializes: AtomicU64,
    pub discovers: AtomicU64,
    pub lists: AtomicU64,
    pub reads: AtomicU64,
    pub reads_in_flight: AtomicU64,
    pub reads_at_once: AtomicU64,
    pub subscribes: AtomicU64,
    pub unsubscribes: AtomicU64,
    pub listens: AtomicU64,
    pub gets: AtomicU64,
    pub deletes: AtomicU64,
}

/// Counts one and returns which one it was, from 1.
pub fn count(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

/// A read counts as in flight while this lives, also when the client goes away.
pub struct InFlight<'a>(&'a AtomicU64);

impl Counts {
    pub fn read_begins(&self) -> InFlight<'_> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let now = self.reads_in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.reads_at_once.fetch_max(now, Ordering::Relaxed);
        InFlight(&self.reads_in_flight)
    }

    pub fn snapshot(
        &self,
        sessions_live: usize,
        streams_live: usize,
        listens_live: usize,
    ) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            posts: get(&self.posts),
            initializes: get(&self.initializes),
            discovers: get(&self.discovers),
            lists: get(&self.lists),
            reads: get(&self.reads),
            reads_in_flight: get(&self.reads_in_flight),
            reads_at_once: get(&self.reads_at_once),
            subscribes: get(&self.subscribes),
            unsubscribes: get(&self.unsubscribes),
            listens: get(&self.listens),
            gets: get(&self.gets),
            deletes: get(&self.deletes),
            sessions_live,
            streams_live,
            listens_live,
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

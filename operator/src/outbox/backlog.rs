//! What one index has still to be told, and what of it may go out now.
//!
//! Pure: time is an argument. What must hold: events of one resource go out one after another, in
//! their order; one that fails holds up its own resource and no other; the acknowledged position never
//! passes an event that is not confirmed.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use fencepost_ledger::backoff::Backoff;
use fencepost_store::{Deliverable, Deliverables};
use tokio::time::Instant;
use uuid::Uuid;

/// Different resources told at the same time. Enough to hide a receiver's latency, few enough not to
/// flood it.
pub(super) const WINDOW: usize = 8;

/// Events in memory for one index: positions and ids only, so some kilobytes. When this many are not
/// confirmed, reading on waits.
const MOST_OUTSTANDING: usize = 256;

/// So many failures without a success between them, and the fault is the endpoint's, not an event's:
/// then one try at a time until one succeeds.
const ENDPOINT_FAILS: u32 = 3;

/// Between tries. Twenty minutes of a receiver's absence cost at most a minute after its return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retries(pub Backoff);

/// A try to make now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Next {
    pub position: i64,
}

/// How far the index is, as the store records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub acknowledged: i64,
    pub delivered: i64,
}

pub(super) struct Backlog {
    retries: Retries,
    outstanding: BTreeMap<i64, Outstanding>,
    /// Everything up to here is read: confirmed, outstanding, or not for this index.
    through: i64,
    delivered: i64,
    in_flight: usize,
    failures_in_a_row: u32,
    /// Nothing goes out before, while the endpoint fails.
    paused_until: Option<Instant>,
    /// Tries of the oldest event before this process took over.
    attempts_before: u32,
}

struct Outstanding {
    resource: Option<Uuid>,
    in_flight: bool,
    attempts: u32,
    not_before: Option<Instant>,
}

impl Backlog {
    /// Begins after what is acknowledged. `attempts` of the oldest event count on.
    pub fn after(acknowledged: i64, attempts: u32, retries: Retries) -> Self {
        Self {
            retries,
            outstanding: BTreeMap::new(),
            through: acknowledged,
            delivered: acknowledged,
            in_flight: 0,
            failures_in_a_row: 0,
            paused_until: None,
            attempts_before: attempts,
        }
    }

    /// Read on after this position, at most that many events.
    pub fn room(&self) -> Option<(i64, u32)> {
        let room = MOST_OUTSTANDING.saturating_sub(self.outstanding.len());
        // Not one at a time: each reading is a statement.
        (room >= MOST_OUTSTANDING / 4 || self.outstanding.is_empty())
            .then(|| (self.through, u32::try_from(room).unwrap_or(u32::MAX)))
    }

    pub fn take(&mut self, read: Deliverables) {
        for Deliverable {
            position,
            resource_id,
        } in read.events
        {
            let attempts = std::mem::take(&mut self.attempts_before);
            self.outstanding.insert(
                position,
                Outstanding {
                    resource: resource_id,
                    in_flight: false,
                    attempts,
                    not_before: None,
                },
            );
        }
        self.through = self.through.max(read.through);
    }

    /// The oldest event that may go out at `now`.
    pub fn next(&mut self, now: Instant) -> Option<Next> {
        if self.in_flight >= self.window() || self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        let position = self
            .heads()
            .find(|(_, event)| event.not_before.is_none_or(|at| at <= now))?
            .0;
        let event = self.outstanding.get_mut(&position)?;
        event.in_flight = true;
        event.attempts = event.attempts.saturating_add(1);
        self.in_flight += 1;
        self.delivered = self.delivered.max(position);
        Some(Next { position })
    }

    /// When to ask [`next`](Self::next) again though nothing has happened. None: only when something has.
    pub fn wakes_at(&self) -> Option<Instant> {
        if self.in_flight >= self.window() {
            return None;
        }
        self.heads()
            .filter_map(|(_, event)| event.not_before.max(self.paused_until))
            .min()
    }

    /// The receiver confirmed it.
    pub fn confirmed(&mut self, position: i64) {
        if self.outstanding.remove(&position).is_some() {
            self.in_flight -= 1;
        }
        if self.endpoint_fails() {
            // It is back: what waits for its own retry need not wait any longer.
            for event in self.outstanding.values_mut() {
                event.not_before = None;
            }
        }
        self.failures_in_a_row = 0;
        self.paused_until = None;
    }

    /// The try failed; `unit` is a random number in 0..1. Answers how long until the next.
    pub fn failed(&mut self, position: i64, now: Instant, unit: f64) -> Duration {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        if self.endpoint_fails() {
            let pause = self.retries.0.delay(self.failures_in_a_row, unit);
            self.paused_until = Some(now + pause);
        }
        let Some(event) = self.outstanding.get_mut(&position) else {
            return Duration::ZERO;
        };
        event.in_flight = false;
        self.in_flight -= 1;
        let delay = self.retries.0.delay(event.attempts, unit);
        event.not_before = Some(now + delay);
        self.paused_until
            .map_or(delay, |until| delay.max(until - now))
    }

    /// The receiver says that it is gone for good. It may be mistaken, so tries go on, as far apart as
    /// they ever are.
    pub fn gone(&mut self, position: i64, now: Instant) -> Duration {
        self.failures_in_a_row = ENDPOINT_FAILS.max(self.failures_in_a_row);
        let cap = self.retries.0.cap;
        let _ = self.failed(position, now, 1.0);
        if let Some(event) = self.outstanding.get_mut(&position) {
            event.not_before = Some(now + cap);
        }
        self.paused_until = Some(now + cap);
        cap
    }

    /// The try was not made: the database did not answer. Counts for nothing.
    pub fn put_back(&mut self, position: i64, until: Instant) {
        if let Some(event) = self.outstanding.get_mut(&position) {
            event.in_flight = false;
            event.attempts = event.attempts.saturating_sub(1);
            event.not_before = Some(until);
            self.in_flight -= 1;
        }
    }

    pub fn reached(&self) -> Reached {
        let acknowledged = self
            .outstanding
            .first_key_value()
            .map_or(self.through, |(oldest, _)| oldest - 1);
        Reached {
            acknowledged,
            delivered: self.delivered.max(acknowledged),
        }
    }

    /// The oldest event that is not confirmed, and its tries.
    pub fn oldest(&self) -> Option<(i64, u32)> {
        self.outstanding
            .first_key_value()
            .map(|(position, event)| (*position, event.attempts))
    }

    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    const fn window(&self) -> usize {
        if self.endpoint_fails() { 1 } else { WINDOW }
    }

    const fn endpoint_fails(&self) -> bool {
        self.failures_in_a_row >= ENDPOINT_FAILS
    }

    /// The first event of each resource, without those of resources that have one in flight.
    fn heads(&self) -> impl Iterator<Item = (i64, &Outstanding)> {
        let mut seen = HashSet::new();
        self.outstanding
            .iter()
            .filter(move |(_, event)| seen.insert(event.resource))
            .filter(|(_, event)| !event.in_flight)
            .map(|(position, event)| (*position, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRIES: Retries = Retries(Backoff {
        first: Duration::from_secs(1),
        cap: Duration::from_mins(1),
    });

    fn backlog(events: &[(i64, u128)]) -> Backlog {
        let mut backlog = Backlog::after(0, 0, RETRIES);
        let events: Vec<_> = events
            .iter()
            .map(|(position, resource)| Deliverable {
                position: *position,
                resource_id: Some(Uuid::from_u128(*resource)),
            })
            .collect();
        let through = events.last().map_or(0, |event| event.position);
        backlog.take(Deliverables { events, through });
        backlog
    }

    fn sent(backlog: &mut Backlog, now: Instant) -> Vec<i64> {
        std::iter::from_fn(|| backlog.next(now))
            .map(|next| next.position)
            .collect()
    }

    #[test]
    fn one_resource_goes_one_by_one_and_others_beside_it() {
        let now = Instant::now();
        let mut backlog = backlog(&[(1, 1), (2, 1), (3, 2), (4, 1)]);
        assert_eq!(sent(&mut backlog, now), [1, 3]);
        backlog.confirmed(3);
        assert_eq!(
            backlog.reached(),
            Reached {
                acknowledged: 0,
                delivered: 3
            }
        );
        assert_eq!(sent(&mut backlog, now), Vec::<i64>::new());
        backlog.confirmed(1);
        assert_eq!(sent(&mut backlog, now), [2]);
        backlog.confirmed(2);
        assert_eq!(backlog.reached().acknowledged, 3);
        assert_eq!(sent(&mut backlog, now), [4]);
        backlog.confirmed(4);
        assert_eq!(backlog.reached().acknowledged, 4);
    }

    #[test]
    fn a_failing_event_holds_up_its_own_resource_only() {
        let now = Instant::now();
        let mut backlog = backlog(&[(1, 1), (2, 1), (3, 2)]);
        assert_eq!(sent(&mut backlog, now), [1, 3]);
        assert_eq!(backlog.failed(1, now, 1.0), Duration::from_secs(1));
        backlog.confirmed(3);
        assert_eq!(sent(&mut backlog, now), Vec::<i64>::new());
        assert_eq!(backlog.wakes_at(), Some(now + Duration::from_secs(1)));
        assert_eq!(sent(&mut backlog, now + Duration::from_secs(1)), [1]);
        assert_eq!(backlog.oldest(), Some((1, 2)));
        assert_eq!(backlog.reached().acknowledged, 0);
    }

    #[test]
    fn a_dead_endpoint_gets_one_try_at_a_time_and_all_at_once_when_it_is_back() {
        let mut now = Instant::now();
        let events: Vec<_> = (1..=20_i64)
            .map(|n| (n, u128::from(n.unsigned_abs())))
            .collect();
        let mut backlog = backlog(&events);
        let first = sent(&mut backlog, now);
        assert_eq!(first.len(), WINDOW);
        for position in first {
            backlog.failed(position, now, 1.0);
        }
        for _ in 0..10 {
            assert_eq!(sent(&mut backlog, now), Vec::<i64>::new());
            now += Duration::from_secs(61);
            let probe = sent(&mut backlog, now);
            assert_eq!(probe, [1]);
            backlog.failed(1, now, 1.0);
        }
        now += Duration::from_secs(61);
        assert_eq!(sent(&mut backlog, now), [1]);
        backlog.confirmed(1);
        assert_eq!(sent(&mut backlog, now).len(), WINDOW);
    }

    #[test]
    fn reading_on_stops_when_too_much_is_outstanding() {
        let events: Vec<_> = (1..=256).map(|n| (n, 1)).collect();
        assert_eq!(backlog(&events).room(), None);
        assert_eq!(backlog(&events[..10]).room(), Some((10, 246)));
    }

    #[test]
    fn what_is_not_for_the_index_is_passed_and_tries_before_a_restart_count() {
        let mut backlog = Backlog::after(10, 7, RETRIES);
        backlog.take(Deliverables {
            events: Vec::new(),
            through: 40,
        });
        assert_eq!(
            backlog.reached(),
            Reached {
                acknowledged: 40,
                delivered: 40
            }
        );
        backlog.take(Deliverables {
            events: vec![Deliverable {
                position: 41,
                resource_id: None,
            }],
            through: 41,
        });
        assert_eq!(sent(&mut backlog, Instant::now()), [41]);
        assert_eq!(backlog.oldest(), Some((41, 8)));
    }
}

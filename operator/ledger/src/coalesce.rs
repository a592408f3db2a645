//! Pulses to reads: at most one read of a resource in flight and at most one owed after it.
//!
//! Times are durations since an origin that the caller keeps. A notification waits a quiet window
//! that later pulses do not extend, so that its cost in latency is bounded. A pulse that comes while
//! a read is in flight owes another one: that read may predate the change.

use std::time::Duration;

use crate::trigger::Trigger;

/// Where the resource stands between pulse and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Idle,
    Quiet {
        until: Duration,
        trigger: Trigger,
    },
    Queued {
        trigger: Trigger,
    },
    InFlight {
        owed: Option<Trigger>,
    },
}

/// What the caller has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// Call `wake` at this time.
    WakeAt(Duration),
    /// Put the resource into the queue of reads, then call `begin` when its turn has come.
    Enqueue,
}

/// The coalescer of one resource.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coalescer {
    state: State,
    /// First pulse that no issued read answers yet.
    unanswered: Option<Duration>,
    /// First pulse that the read in flight answers.
    answering: Option<Duration>,
}

impl Coalescer {
    /// Something asks for a read. `window` is the quiet window for notifications.
    pub fn pulse(&mut self, trigger: Trigger, now: Duration, window: Duration) -> Step {
        self.unanswered.get_or_insert(now);
        match self.state {
            State::Idle if trigger == Trigger::Notification && !window.is_zero() => {
                let until = now + window;
                self.state = State::Quiet { until, trigger };
                Step::WakeAt(until)
            }
            State::Idle => {
                self.state = State::Queued { trigger };
                Step::Enqueue
            }
            State::Quiet { until, trigger: t } => {
                self.state = State::Quiet {
                    until,
                    trigger: t.max(trigger),
                };
                Step::Nothing
            }
            State::Queued { trigger: t } => {
                self.state = State::Queued {
                    trigger: t.max(trigger),
                };
                Step::Nothing
            }
            State::InFlight { owed } => {
                self.state = State::InFlight {
                    owed: owed.max(Some(trigger)),
                };
                Step::Nothing
            }
        }
    }

    /// The time asked for by `WakeAt` has come. Called too early or twice, it does nothing.
    pub fn wake(&mut self, now: Duration) -> Step {
        match self.state {
            State::Quiet { until, trigger } if now >= until => {
                self.state = State::Queued { trigger };
                Step::Enqueue
            }
            State::Quiet { until, .. } => Step::WakeAt(until),
            State::Idle | State::Queued { .. } | State::InFlight { .. } => Step::Nothing,
        }
    }

    /// The resource's turn in the queue: the read is about to be issued.
    pub fn begin(&mut self) -> Option<Trigger> {
        let State::Queued { trigger } = self.state else {
            return None;
        };
        self.state = State::InFlight { owed: None };
        self.answering = self.unanswered.take();
        Some(trigger)
    }

    /// The read was answered and settled in order. Returns the time since the first pulse that it
    /// answers, and the next step (the owed read).
    pub fn answered(&mut self, now: Duration, window: Duration) -> (Option<Duration>, Step) {
        let convergence = self.answering.take().map(|since| now.saturating_sub(since));
        (convergence, self.leave_flight(now, window))
    }

    /// The read brought no usable answer: what it was to answer is still unanswered.
    pub fn unanswered(&mut self, now: Duration, window: Duration) -> Step {
        if let Some(since) = self.answering.take() {
            self.unanswered = Some(self.unanswered.map_or(since, |u| u.min(since)));
        }
        let still = self.unanswered;
        let step = self.leave_flight(now, window);
        self.unanswered = still;
        step
    }

    fn leave_flight(&mut self, now: Duration, window: Duration) -> Step {
        let State::InFlight { owed } = self.state else {
            return Step::Nothing;
        };
        self.state = State::Idle;
        match owed {
            Some(trigger) => self.pulse(trigger, now, window),
            None => Step::Nothing,
        }
    }

    /// Forgets everything that is pending: the generation was closed.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    pub const fn is_in_flight(&self) -> bool {
        matches!(self.state, State::InFlight { .. })
    }

    /// Since when a pulse waits for an answer; counts the one that the read in flight answers.
    pub fn dirty_since(&self) -> Option<Duration> {
        match (self.answering, self.unanswered) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn duplicates_within_the_window_cost_one_read() {
        let mut c = Coalescer::default();
        assert_eq!(
            c.pulse(Trigger::Notification, Duration::ZERO, 20 * MS),
            Step::WakeAt(20 * MS)
        );
        assert_eq!(
            c.pulse(Trigger::Notification, 15 * MS, 20 * MS),
            Step::Nothing
        );
        assert_eq!(c.wake(10 * MS), Step::WakeAt(20 * MS));
        assert_eq!(c.wake(20 * MS), Step::Enqueue);
        assert_eq!(c.wake(20 * MS), Step::Nothing);
        assert_eq!(c.begin(), Some(Trigger::Notification));
        assert_eq!(c.begin(), None);
        assert_eq!(c.answered(50 * MS, 20 * MS), (Some(50 * MS), Step::Nothing));
        assert!(c.is_idle());
    }

    #[test]
    fn a_pulse_during_flight_owes_exactly_one_more() {
        let mut c = Coalescer::default();
        c.pulse(Trigger::Poll, Duration::ZERO, 20 * MS);
        c.begin();
        for at in 1..1000 {
            assert_eq!(
                c.pulse(Trigger::Notification, at * MS, 20 * MS),
                Step::Nothing
            );
        }
        let (convergence, step) = c.answered(1000 * MS, 20 * MS);
        assert_eq!(convergence, Some(1000 * MS));
        assert_eq!(step, Step::WakeAt(1020 * MS));
        // The owed read answers the first pulse that came during the flight.
        assert_eq!(c.dirty_since(), Some(MS));
        c.wake(1020 * MS);
        c.begin();
        assert_eq!(
            c.answered(1100 * MS, 20 * MS),
            (Some(1099 * MS), Step::Nothing)
        );
    }

    #[test]
    fn a_failed_read_leaves_its_pulse_unanswered() {
        let mut c = Coalescer::default();
        c.pulse(Trigger::Gap, 5 * MS, 20 * MS);
        c.begin();
        assert_eq!(c.unanswered(10 * MS, 20 * MS), Step::Nothing);
        assert_eq!(c.dirty_since(), Some(5 * MS));
        c.pulse(Trigger::Gap, 100 * MS, 20 * MS);
        c.begin();
        assert_eq!(c.answered(110 * MS, 20 * MS).0, Some(105 * MS));
    }
}

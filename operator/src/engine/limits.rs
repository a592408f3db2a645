//! How much one server is asked: reads in flight and reads a second, over all of its subjects.
//!
//! Waiting reads are served in the order in which their sessions asked, and a session asks for one at
//! a time, so that no resource and no session starves another.

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

/// A server that says "later" is left alone for at most so long at a time.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// The limits of one server.
pub struct ServerLimits {
    in_flight: Arc<Semaphore>,
    rate: DefaultDirectRateLimiter,
    paused_until: Mutex<Option<Instant>>,
}

/// Held from a read's issue to its answer.
pub struct ReadPermit {
    _in_flight: OwnedSemaphorePermit,
}

impl ServerLimits {
    pub fn new(max_in_flight: u32, requests_per_second: u32) -> Self {
        let a_second = NonZeroU32::new(requests_per_second).unwrap_or(NonZeroU32::MIN);
        Self {
            in_flight: Arc::new(Semaphore::new(max_in_flight.max(1) as usize)),
            rate: RateLimiter::direct(Quota::per_second(a_second)),
            paused_until: Mutex::new(None),
        }
    }

    /// Waits for a place in flight, then for the rate, then for the end of a pause. None when the
    /// server's limits were closed.
    pub async fn acquire(&self) -> Option<ReadPermit> {
        let permit = Arc::clone(&self.in_flight).acquire_owned().await.ok()?;
        self.rate.until_ready().await;
        loop {
            let paused = *self.paused();
            match paused {
                Some(until) if until > Instant::now() => sleep_until(until).await,
                _ => break,
            }
        }
        Some(ReadPermit { _in_flight: permit })
    }

    /// The server limits its rate: nothing is asked for so long.
    pub fn pause(&self, wanted: Duration) {
        let until = Instant::now() + wanted.min(LONGEST_PAUSE);
        let mut paused = self.paused();
        *paused = (*paused).max(Some(until));
    }

    fn paused(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

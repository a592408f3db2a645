//! A read that is kept back until the test lets it go.

use std::time::Duration;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Caught,
    Released,
}

/// The test's end. Dropping it releases the read.
pub struct ReadHold {
    phase: watch::Sender<Phase>,
}

/// The server's end.
pub struct Gate {
    phase: watch::Sender<Phase>,
}

pub fn pair() -> (ReadHold, Gate) {
    let (phase, _) = watch::channel(Phase::Waiting);
    (
        ReadHold {
            phase: phase.clone(),
        },
        Gate { phase },
    )
}

impl ReadHold {
    /// Waits until a read has come and is held.
    pub async fn caught(&self, limit: Duration) {
        let mut phase = self.phase.subscribe();
        let caught =
            tokio::time::timeout(limit, phase.wait_for(|phase| *phase != Phase::Waiting)).await;
        assert!(caught.is_ok(), "no read came to be held within {limit:?}");
    }

    pub fn is_caught(&self) -> bool {
        *self.phase.borrow() == Phase::Caught
    }

    /// Lets the read go; one that has not come yet will not be held.
    pub fn release(self) {}
}

impl Drop for ReadHold {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Released);
    }
}

impl Gate {
    /// Whether the test still wants to hold a read here.
    pub fn is_open(&self) -> bool {
        *self.phase.borrow() == Phase::Released
    }

    pub async fn pass(self) {
        self.phase.send_if_modified(|phase| {
            let waiting = *phase == Phase::Waiting;
            if waiting {
                *phase = Phase::Caught;
            }
            waiting
        });
        let mut phase = self.phase.subscribe();
        // The sender in `self` lives, so waiting ends only by the release.
        drop(phase.wait_for(|phase| *phase == Phase::Released).await);
    }
}

//! Capped, jittered, exponential backoff.

use std::time::Duration;

/// Delays that double from `first` to `cap`.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    pub cap: Duration,
}

impl Backoff {
    /// Delay before try number `attempt` (1 is the first retry). `unit` is a random number in
    /// `0.0..1.0`: the delay lies between half of the exponential value and all of it, so that many
    /// that failed together do not come back together.
    pub fn delay(&self, attempt: u32, unit: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let full = self.first.saturating_mul(1_u32 << doublings).min(self.cap);
        full.mul_f64(0.5 + unit.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_to_the_cap_and_spreads_over_the_upper_half() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            cap: Duration::from_secs(10),
        };
        assert_eq!(backoff.delay(1, 1.0), Duration::from_millis(100));
        assert_eq!(backoff.delay(1, 0.0), Duration::from_millis(50));
        assert_eq!(backoff.delay(3, 1.0), Duration::from_millis(400));
        assert_eq!(backoff.delay(u32::MAX, 1.0), Duration::from_secs(10));
    }
}

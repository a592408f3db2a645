//! When a resource is read without being asked: polls, audits, and checks of a tombstone.
//!
//! Jitter only ever shortens an interval, so that a bound on staleness holds.

use std::time::Duration;

/// Share of `maxStaleness` after which an audit read is due: the rest is for the read itself.
const AUDIT_SHARE: f64 = 0.9;

/// The refresh settings of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refresh {
    pub max_staleness: Duration,
    pub poll_interval: Duration,
    /// 0 to 50.
    pub jitter_percent: u32,
}

impl Refresh {
    fn jittered(&self, interval: Duration, unit: f64) -> Duration {
        let share = f64::from(self.jitter_percent.min(50)) / 100.0;
        interval.mul_f64(1.0 - share * unit.clamp(0.0, 1.0))
    }

    /// Until the next poll. The server's `ttlMs` may lengthen it, never beyond `maxStaleness`.
    pub fn poll_after(&self, ttl: Option<Duration>, unit: f64) -> Duration {
        let wanted = ttl.map_or(self.poll_interval, |ttl| ttl.max(self.poll_interval));
        self.jittered(wanted.min(self.audit_interval()), unit)
    }

    /// Until the next audit read of a subscribed resource.
    pub fn audit_after(&self, unit: f64) -> Duration {
        self.jittered(self.audit_interval(), unit)
    }

    /// Interval of audits before jitter.
    pub fn audit_interval(&self) -> Duration {
        self.max_staleness.mul_f64(AUDIT_SHARE)
    }

    /// Until the next look at a resource that was not found: four looks within `maxStaleness`.
    pub fn tombstone_check_after(&self, unit: f64) -> Duration {
        self.jittered(self.poll_interval.min(self.max_staleness / 4), unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFRESH: Refresh = Refresh {
        max_staleness: Duration::from_secs(100),
        poll_interval: Duration::from_secs(30),
        jitter_percent: 10,
    };

    #[test]
    fn jitter_only_shortens() {
        assert_eq!(REFRESH.poll_after(None, 0.0), Duration::from_secs(30));
        assert_eq!(REFRESH.poll_after(None, 1.0), Duration::from_secs(27));
        assert_eq!(REFRESH.audit_after(0.0), Duration::from_secs(90));
    }

    #[test]
    fn a_ttl_lengthens_a_poll_within_the_bound_and_never_shortens_it() {
        let ttl = |secs| Some(Duration::from_secs(secs));
        assert_eq!(REFRESH.poll_after(ttl(5), 0.0), Duration::from_secs(30));
        assert_eq!(REFRESH.poll_after(ttl(60), 0.0), Duration::from_mins(1));
        assert_eq!(
            REFRESH.poll_after(ttl(100_000), 0.0),
            Duration::from_secs(90)
        );
    }
}

//! The last quarter of an hour, minute by minute: what the ratios are ratios of.
//!
//! A ratio since the process began would hide an hour of trouble behind a good month.

use std::collections::VecDeque;

use fencepost_store::CONVERGENCE_TARGET_SECONDS;

/// Long enough that a quiet server still has a ratio, short enough to see a change.
const MINUTES: u64 = 15;

#[derive(Debug, Default)]
pub(super) struct Window {
    /// Oldest first, at most [`MINUTES`].
    minutes: VecDeque<(u64, Tally)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    converged: u64,
    within_target: u64,
    reads: u64,
    versions: u64,
}

impl Window {
    pub fn converged(&mut self, minute: u64, seconds: f64) {
        let tally = self.at(minute);
        tally.converged += 1;
        tally.within_target += u64::from(seconds <= CONVERGENCE_TARGET_SECONDS);
    }

    /// A read that a notification caused, and whether it brought a version.
    pub fn read(&mut self, minute: u64, version: bool) {
        let tally = self.at(minute);
        tally.reads += 1;
        tally.versions += u64::from(version);
    }

    pub fn is_empty(&self, minute: u64) -> bool {
        self.recent(minute).next().is_none()
    }

    /// Share of convergences within the target. None: there was none.
    pub fn converged_ratio(&self, minute: u64) -> Option<f64> {
        let (within, all) = self.recent(minute).fold((0, 0), |(within, all), t| {
            (within + t.within_target, all + t.converged)
        });
        (all > 0).then(|| within as f64 / all as f64)
    }

    /// Reads that notifications caused per version that they brought. None: no version.
    pub fn amplification(&self, minute: u64) -> Option<f64> {
        let (reads, versions) = self.recent(minute).fold((0, 0), |(reads, versions), t| {
            (reads + t.reads, versions + t.versions)
        });
        (versions > 0).then(|| reads as f64 / versions as f64)
    }

    fn recent(&self, minute: u64) -> impl Iterator<Item = &Tally> {
        self.minutes
            .iter()
            .filter(move |(at, _)| at + MINUTES > minute)
            .map(|(_, tally)| tally)
    }

    fn at(&mut self, minute: u64) -> &mut Tally {
        if self.minutes.back().is_none_or(|(at, _)| *at < minute) {
            self.minutes.push_back((minute, Tally::default()));
        }
        while self.minutes.len() as u64 > MINUTES {
            self.minutes.pop_front();
        }
        let newest = self.minutes.len() - 1;
        &mut self.minutes[newest].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_window_counts_no_more() {
        let mut window = Window::default();
        window.converged(0, 61.0);
        window.converged(10, 1.0);
        assert_eq!(window.converged_ratio(14), Some(0.5));
        assert_eq!(window.converged_ratio(15), Some(1.0));
        assert_eq!(window.converged_ratio(25), None);
        assert!(window.is_empty(25));
    }

    #[test]
    fn amplification_needs_a_version() {
        let mut window = Window::default();
        window.read(0, false);
        assert_eq!(window.amplification(0), None);
        window.read(1, true);
        assert_eq!(window.amplification(1), Some(2.0));
    }

    #[test]
    fn a_long_run_keeps_no_more_than_the_window() {
        let mut window = Window::default();
        for minute in 0..1000 {
            window.read(minute, true);
        }
        assert_eq!(window.minutes.len(), 15);
    }
}

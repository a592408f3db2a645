//! The quiet window before a notification's read: wide enough to fold a server's repeats, no wider.
//!
//! A repeat that comes after the read was issued costs another read. When that read shows nothing
//! new, the window was too narrow for this server and grows to the gap seen; reads that do bring a
//! version shrink it slowly. One window a session: it is the server that repeats itself.

use std::time::Duration;

/// Lower bound: what a burst of inotify events on one file takes.
pub const MIN_WINDOW: Duration = Duration::from_millis(10);
/// Upper bound: with a read of some 100 ms a change still converges within half a second.
pub const MAX_WINDOW: Duration = Duration::from_millis(300);
/// Where a session starts.
pub const FIRST_WINDOW: Duration = Duration::from_millis(20);

/// The adaptive quiet window of a session.
#[derive(Debug, Clone, Copy)]
pub struct QuietWindow(Duration);

impl Default for QuietWindow {
    fn default() -> Self {
        Self(FIRST_WINDOW)
    }
}

impl QuietWindow {
    pub const fn get(self) -> Duration {
        self.0
    }

    /// A notification's read showed nothing new. `gap` is the time from the read of the change
    /// to the repeat that caused this one.
    pub fn wasted(&mut self, gap: Duration) {
        let wanted = gap.saturating_mul(5) / 4;
        self.0 = self.0.max(wanted).clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// A notification's read brought a version.
    pub fn useful(&mut self) {
        self.0 = (self.0 * 127 / 128).max(MIN_WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_the_gap_seen_and_shrinks_slowly_within_its_bounds() {
        let mut window = QuietWindow::default();
        window.wasted(Duration::from_millis(80));
        assert_eq!(window.get(), Duration::from_millis(100));
        window.wasted(Duration::from_millis(10));
        assert_eq!(window.get(), Duration::from_millis(100));
        window.wasted(Duration::from_mins(1));
        assert_eq!(window.get(), MAX_WINDOW);
        window.useful();
        assert!(window.get() < MAX_WINDOW);
        for _ in 0..10_000 {
            window.useful();
        }
        assert_eq!(window.get(), MIN_WINDOW);
    }
}

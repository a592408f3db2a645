//! A resource whose digest changes on nearly every read carries noise, such as an embedded time.
//!
//! Only reads that no notification caused count: a resource that is read because it changed is
//! supposed to differ each time.

/// How many reads are looked at.
const WINDOW: u32 = 16;
/// From how many changed ones a full window counts as volatile.
const CHANGED: u32 = 15;

/// The last reads of a resource, one bit each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Volatility {
    changed: u16,
    seen: u8,
}

impl Volatility {
    pub fn record(&mut self, changed: bool) {
        self.changed = self.changed << 1 | u16::from(changed);
        self.seen = self.seen.saturating_add(1).min(16);
    }

    pub const fn is_volatile(self) -> bool {
        self.seen as u32 == WINDOW && self.changed.count_ones() >= CHANGED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_of_changes_is_volatile_and_calms_down() {
        let mut volatility = Volatility::default();
        for _ in 0..15 {
            volatility.record(true);
            assert!(!volatility.is_volatile());
        }
        volatility.record(true);
        assert!(volatility.is_volatile());
        volatility.record(false);
        assert!(volatility.is_volatile());
        volatility.record(false);
        assert!(!volatility.is_volatile());
    }
}

//! The geometry of a resource's picture: reads as bars in lanes, the watermark as steps, marks.
//!
//! In: a [`Timeline`] and a scale. Out: shares of the picture's width (0 to 1), never pixels, so the
//! server can draw it without knowing the screen. Two reads that were in flight together never
//! share a lane; a read that raised the watermark is where the step line rises.

use chrono::{DateTime, Utc};
use fencepost_views::{Receipt, Timeline};

/// What lies along the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Time: distance is duration.
    Time,
    /// Order: each event as far from the next, however quick they were. Overlaps of milliseconds are seen.
    Order,
}

/// Lanes at most; reads beyond share the last one, and the table below lists them all.
pub const MOST_LANES: usize = 8;
/// Reads at most in a picture by order: more would make bars thinner than a finger or an eye can tell apart.
pub const MOST_ORDERED: usize = 40;
/// Narrowest bar as a share of the width: about 4 px of 1000.
const NARROWEST: f64 = 0.004;

/// A read from issue to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub read: Receipt,
    pub lane: usize,
    pub start: f64,
    /// The right end; the picture's edge while in flight.
    pub end: f64,
    pub in_flight: bool,
}

/// The watermark from here to the next step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub at: f64,
    pub ordinal: i64,
}

/// A notification, gap, opening or closing.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub at: f64,
    pub mark: fencepost_views::Mark,
}

/// The laid-out picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picture {
    pub bars: Vec<Bar>,
    pub lanes: usize,
    pub steps: Vec<Step>,
    pub marks: Vec<Placed>,
    /// Moments along the bottom: a share and what to write there.
    pub ticks: Vec<(f64, String)>,
    /// Reads of the range that the picture leaves out.
    pub left_out: usize,
}

impl Picture {
    pub fn lay_out(timeline: &Timeline, scale: Scale) -> Self {
        let most = if scale == Scale::Order {
            MOST_ORDERED
        } else {
            usize::MAX
        };
        let left_out = timeline.reads.len().saturating_sub(most);
        let reads = &timeline.reads[left_out..];
        let axis = Axis::new(timeline, reads, scale, left_out > 0);
        let mut picture = Self {
            left_out,
            ticks: axis.ticks(),
            ..Self::default()
        };
        picture.place_bars(reads, &axis);
        picture.place_steps(timeline, left_out, &axis);
        picture.marks = timeline
            .marks
            .iter()
            .filter_map(|mark| {
                axis.share(mark.at).map(|at| Placed {
                    at,
                    mark: mark.clone(),
                })
            })
            .collect();
        picture
    }

    fn place_bars(&mut self, reads: &[Receipt], axis: &Axis) {
        let mut ends: Vec<f64> = Vec::new();
        for read in reads {
            let start = axis.clamped(read.issued_at);
            let end = read
                .finished_at
                .map_or(1.0, |at| axis.clamped(at))
                .max(start + NARROWEST)
                .min(1.0);
            let start = start.min(end - NARROWEST);
            let free = ends.iter().position(|taken| *taken <= start);
            let lane = free.unwrap_or(ends.len().min(MOST_LANES - 1));
            if lane == ends.len() {
                ends.push(end);
            } else {
                ends[lane] = ends[lane].max(end);
            }
            self.bars.push(Bar {
                read: read.clone(),
                lane,
                start,
                end,
                in_flight: read.finished_at.is_none(),
            });
        }
        self.lanes = ends.len().max(1);
    }

    /// The watermark rises when an answer that passed the fences lands: at its end, to its ordinal.
    fn place_steps(&mut self, timeline: &Timeline, left_out: usize, axis: &Axis) {
        let mut landed: Vec<&Receipt> = timeline
            .reads
            .iter()
            .filter(|read| read.outcome.as_deref().is_some_and(raises_watermark))
            .collect();
        landed.sort_by_key(|read| read.finished_at);
        let first_shown = timeline.reads.get(left_out).map(|read| read.issued_at);
        let mut ordinal = timeline.watermark_before;
        let mut steps = vec![Step { at: 0.0, ordinal }];
        for read in landed {
            let Some(finished) = read.finished_at else {
                continue;
            };
            if read.ordinal <= ordinal {
                continue;
            }
            ordinal = read.ordinal;
            if left_out > 0 && first_shown.is_some_and(|shown| finished < shown) {
                steps[0].ordinal = ordinal;
            } else {
                steps.push(Step {
                    at: axis.clamped(finished),
                    ordinal,
                });
            }
        }
        self.steps = steps;
    }
}

/// Outcomes that raise the watermark: an in-order "not found" also consumes its ordinal only when accepted
/// as a tombstone, which the ledger writes as a mark, so it is not among them.
fn raises_watermark(outcome: &str) -> bool {
    matches!(outcome, "accepted" | "unchanged")
}

/// From moments to shares of the width.
struct Axis {
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    /// Distinct moments in order; empty for a scale of time.
    moments: Vec<DateTime<Utc>>,
}

impl Axis {
    fn new(timeline: &Timeline, reads: &[Receipt], scale: Scale, cut: bool) -> Self {
        let mut moments = Vec::new();
        let from = if cut {
            reads.first().map_or(timeline.from, |read| read.issued_at)
        } else {
            timeline.from
        };
        if scale == Scale::Order {
            moments.extend(
                reads
                    .iter()
                    .flat_map(|read| [Some(read.issued_at), read.finished_at])
                    .flatten(),
            );
            moments.extend(timeline.marks.iter().map(|mark| mark.at));
            moments.retain(|at| *at >= from && *at <= timeline.to);
            moments.sort();
            moments.dedup();
        }
        Self {
            from,
            to: timeline.to,
            moments,
        }
    }

    /// Where a moment lies; `None` when outside.
    fn share(&self, at: DateTime<Utc>) -> Option<f64> {
        (at >= self.from && at <= self.to).then(|| self.clamped(at))
    }

    fn clamped(&self, at: DateTime<Utc>) -> f64 {
        if self.moments.is_empty() {
            let whole = crate::figures::seconds_between(self.from, self.to);
            if whole <= 0.0 {
                return 1.0;
            }
            return (crate::figures::seconds_between(self.from, at) / whole).clamp(0.0, 1.0);
        }
        let place = self.moments.partition_point(|moment| *moment < at);
        #[allow(clippy::cast_precision_loss, reason = "a few hundred moments")]
        let (place, slots) = (place as f64, self.moments.len() as f64);
        ((place + 0.5) / slots).clamp(0.0, 1.0)
    }

    /// Five moments along the bottom of a scale of time; by order only the ends mean something.
    fn ticks(&self) -> Vec<(f64, String)> {
        let long = (self.to - self.from).num_hours() >= 12;
        let write = |at: DateTime<Utc>| {
            at.format(if long { "%-d %b %H:%M" } else { "%H:%M:%S" })
                .to_string()
        };
        match self.moments.as_slice() {
            [] => (0..=4)
                .map(|quarter| {
                    let at = self.from + (self.to - self.from) * quarter / 4;
                    (f64::from(quarter) / 4.0, write(at))
                })
                .collect(),
            [only] => vec![(0.5, write(*only))],
            [first, .., last] => vec![(0.0, write(*first)), (1.0, write(*last))],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use chrono::TimeDelta;
    use fencepost_views::Mark;

    fn second(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::seconds(seconds)
    }

    fn read(ordinal: i64, issued: i64, finished: Option<i64>, outcome: &str) -> Receipt {
        Receipt {
            request_id: format!("request-{ordinal}"),
            generation: 1,
            ordinal,
            trigger: "Notification".into(),
            issued_at: second(issued),
            finished_at: finished.map(second),
            outcome: finished.map(|_| outcome.to_owned()),
            reason: None,
            detail: None,
            digest: None,
        }
    }

    fn timeline(reads: Vec<Receipt>) -> Timeline {
        Timeline {
            from: second(0),
            to: second(100),
            reads,
            marks: Vec::new(),
            watermark_before: 4,
            truncated: false,
        }
    }

    #[test]
    fn a_late_read_behind_a_newer_one_does_not_move_the_watermark() {
        let late = timeline(vec![
            read(5, 10, Some(50), "stale"),
            read(6, 20, Some(30), "accepted"),
        ]);
        let picture = Picture::lay_out(&late, Scale::Time);
        assert_eq!(
            picture.steps,
            [
                Step {
                    at: 0.0,
                    ordinal: 4
                },
                Step {
                    at: 0.3,
                    ordinal: 6
                }
            ]
        );
        assert_eq!((picture.bars[0].lane, picture.bars[1].lane), (0, 1));
        assert!(picture.bars[0].end > picture.bars[1].end);
    }

    #[test]
    fn reads_in_flight_together_never_share_a_lane() {
        let many = (0..6)
            .map(|place| read(place, place * 5, Some(place * 5 + 12), "accepted"))
            .collect();
        let picture = Picture::lay_out(&timeline(many), Scale::Time);
        for (place, bar) in picture.bars.iter().enumerate() {
            for other in &picture.bars[place + 1..] {
                assert!(
                    bar.lane != other.lane || bar.end <= other.start,
                    "{bar:?} and {other:?}"
                );
            }
        }
        assert_eq!(picture.lanes, 3);
    }

    #[test]
    fn by_order_the_quickest_read_has_a_bar_as_long_as_any() {
        let quick = vec![
            read(5, 10, Some(11), "accepted"),
            read(6, 90, Some(99), "accepted"),
        ];
        let picture = Picture::lay_out(&timeline(quick), Scale::Order);
        let lengths: Vec<_> = picture.bars.iter().map(|bar| bar.end - bar.start).collect();
        assert!((lengths[0] - lengths[1]).abs() < 1e-9, "{lengths:?}");
    }

    #[test]
    fn a_read_in_flight_reaches_the_edge() {
        let picture = Picture::lay_out(&timeline(vec![read(5, 60, None, "")]), Scale::Time);
        assert!(picture.bars[0].in_flight);
        assert!((picture.bars[0].end - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn by_order_the_newest_reads_stay_and_the_watermark_before_them_is_kept() {
        let many = (0..60)
            .map(|place| read(place + 5, place, Some(place + 1), "accepted"))
            .collect();
        let picture = Picture::lay_out(&timeline(many), Scale::Order);
        assert_eq!((picture.left_out, picture.bars.len()), (20, MOST_ORDERED));
        assert_eq!(picture.bars[0].read.ordinal, 25);
        assert_eq!(picture.steps[0].ordinal, 23);
        assert_eq!(picture.steps.last().unwrap().ordinal, 64);
    }

    #[test]
    fn more_overlaps_than_lanes_are_bounded() {
        let storm = (0..50)
            .map(|place| read(place, 0, Some(90), "accepted"))
            .collect();
        let picture = Picture::lay_out(&timeline(storm), Scale::Time);
        assert_eq!(picture.lanes, MOST_LANES);
        assert_eq!(picture.bars.len(), 50);
    }

    #[test]
    fn marks_outside_the_range_are_left_out() {
        let mut marked = timeline(Vec::new());
        for at in [-5, 50, 200] {
            marked.marks.push(Mark {
                at: second(at),
                kind: "gap".into(),
                generation: 1,
                detail: None,
            });
        }
        let picture = Picture::lay_out(&marked, Scale::Time);
        assert_eq!(picture.marks.len(), 1);
        assert_eq!(picture.ticks.len(), 5);
    }
}

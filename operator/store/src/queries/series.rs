//! The charts' series: the samples of all replicas, folded to at most 240 points.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use fencepost_views::{ReadRate, Sample, Series};
use futures::TryStreamExt as _;
use sqlx::types::Json;
use uuid::Uuid;

use super::{Lent, Queries, QueryError};
use crate::sample::SampleCounts;

/// Points of a chart: as many as a chart of its width can tell apart.
const MAX_POINTS: i64 = 240;

/// The shortest step. Replicas sample every few seconds: a shorter step has points with one replica only.
const MIN_STEP_SECONDS: f64 = 10.0;

/// What the replicas counted within one step.
#[derive(Default)]
pub(super) struct Point {
    pub(super) at: DateTime<Utc>,
    pub(super) counts: SampleCounts,
    /// Seconds that each replica counted for.
    pub(super) covered: BTreeMap<Uuid, f64>,
}

/// A range of samples, folded.
pub(super) struct Folded {
    pub(super) from: DateTime<Utc>,
    pub(super) to: DateTime<Utc>,
    pub(super) step_seconds: f64,
    pub(super) points: Vec<Point>,
    /// The index lag of each single sample, ascending.
    pub(super) lags: Vec<f64>,
}

impl Queries {
    /// The samples of the last `range`.
    pub async fn series(&self, range: TimeDelta) -> Result<Series, QueryError> {
        let mut lent = self.connection().await?;
        let folded = fold(&mut lent, range).await?;
        Ok(Series {
            from: folded.from,
            to: folded.to,
            step_seconds: folded.step_seconds,
            samples: folded.points.iter().map(Point::shown).collect(),
        })
    }
}

/// Reads the samples of a range row by row: a week of them is more than should be held at once.
pub(super) async fn fold(lent: &mut Lent, range: TimeDelta) -> Result<Folded, QueryError> {
    let to: DateTime<Utc> = sqlx::query_scalar("select now()")
        .fetch_one(lent.get())
        .await?;
    let from = to.checked_sub_signed(range).unwrap_or(to);
    let step_seconds = (range.as_seconds_f64() / MAX_POINTS as f64).max(MIN_STEP_SECONDS);
    let mut points: BTreeMap<i64, Point> = BTreeMap::new();
    let mut lags = Vec::new();
    let mut rows = sqlx::query_as::<_, (Uuid, DateTime<Utc>, f64, Json<SampleCounts>)>(
        "select replica, at, seconds, counts from sample where at > $1 and at <= $2 order by at",
    )
    .bind(from)
    .bind(to)
    .fetch(lent.get());
    while let Some((replica, at, seconds, Json(counts))) = rows.try_next().await? {
        let point = points.entry(step_of(at - from, step_seconds)).or_default();
        point.at = at;
        point.counts.absorb(&counts);
        *point.covered.entry(replica).or_default() += seconds;
        lags.extend(counts.index_lag_seconds);
    }
    drop(rows);
    lags.sort_by(f64::total_cmp);
    Ok(Folded {
        from,
        to,
        step_seconds,
        points: points.into_values().collect(),
        lags,
    })
}

/// The step that a moment falls into, counted from the begin of the range; the end belongs to the last.
#[allow(
    clippy::cast_possible_truncation,
    reason = "clamped to the number of points"
)]
fn step_of(since_begin: TimeDelta, step_seconds: f64) -> i64 {
    let step = (since_begin.as_seconds_f64() / step_seconds)
        .floor()
        .clamp(0.0, (MAX_POINTS - 1) as f64);
    step as i64
}

impl Point {
    /// Replicas count at the same time: the step is as long as the replica that counted longest.
    fn seconds(&self) -> f64 {
        self.covered.values().copied().fold(0.0, f64::max)
    }

    fn rate(&self, count: u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 {
            count as f64 / seconds
        } else {
            0.0
        }
    }

    fn shown(&self) -> Sample {
        let counts = &self.counts;
        Sample {
            at: self.at,
            seconds: self.seconds(),
            reads: counts
                .reads
                .iter()
                .map(|(trigger, count)| ReadRate {
                    trigger: trigger.clone(),
                    per_second: self.rate(*count),
                })
                .collect(),
            convergence_p50_seconds: counts.convergence_quantile(0.5),
            convergence_p99_seconds: counts.convergence_quantile(0.99),
            amplification: counts.amplification(),
            index_lag_seconds: counts.index_lag_seconds,
            stale_resources: counts.stale_resources,
            notifications_per_second: self.rate(counts.notifications),
            versions_per_second: self.rate(counts.versions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_of_the_range_falls_into_one_of_the_points() {
        let step = |millis| step_of(TimeDelta::milliseconds(millis), 15.0);
        assert_eq!(
            [
                step(0),
                step(14_999),
                step(15_000),
                step(3_599_999),
                step(3_600_000)
            ],
            [0, 0, 1, 239, 239]
        );
    }

    #[test]
    fn two_replicas_add_their_rates_and_not_their_time() {
        let mut point = Point::default();
        for replica in [Uuid::from_u128(1), Uuid::from_u128(2)] {
            let mut counts = SampleCounts {
                versions: 20,
                ..SampleCounts::default()
            };
            counts.reads.insert("Poll".to_owned(), 50);
            point.counts.absorb(&counts);
            *point.covered.entry(replica).or_default() += 10.0;
        }
        let shown = point.shown();
        assert!((shown.seconds - 10.0).abs() < f64::EPSILON);
        assert!((shown.versions_per_second - 4.0).abs() < 1e-9);
        assert!((shown.reads[0].per_second - 10.0).abs() < 1e-9);
    }
}

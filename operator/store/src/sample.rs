//! The charts' samples: what one replica counted since its sample before, one row each few seconds.
//!
//! In come counts that the metrics kept since the last sample; out go the samples of a range, oldest
//! first, one row a replica and moment. Buckets are per bound, not cumulative, so that samples of
//! many moments and replicas add up by adding.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Store, StoreError, writes::Writer};

/// Upper bounds of the convergence buckets in seconds. There is one exactly at each target of the
/// objectives (1, 5, 30, 60), and they reach from a local read to the longest wait that is still told
/// apart: a quantile is then right to within one bucket.
pub const CONVERGENCE_BOUNDS: [f64; 16] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
];

/// The objective: converged within this many seconds.
pub const CONVERGENCE_TARGET_SECONDS: f64 = 60.0;

/// Most rows that one range answers: a day of samples each 10 s of 3 replicas, with room.
const MAX_SAMPLES: i64 = 30_000;

/// What happened in `seconds`, on one replica or added up over several.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SampleCounts {
    /// How long the counts were gathered. A column of its own in the table.
    #[serde(skip)]
    pub seconds: f64,
    /// Settled reads by trigger (`Poll`, `Notification`, ...).
    pub reads: BTreeMap<String, u64>,
    /// Settled reads by outcome (`accepted`, `unchanged`, ...).
    pub outcomes: BTreeMap<String, u64>,
    pub notifications: u64,
    /// Accepted versions.
    pub versions: u64,
    /// Reads that notifications caused, and the versions those reads brought: amplification.
    pub notification_reads: u64,
    pub notification_versions: u64,
    /// Convergences per bucket of [`CONVERGENCE_BOUNDS`]; one more at the end for those above all.
    pub convergence_buckets: Vec<u64>,
    pub converged_within_target: u64,
    pub converged_total: u64,
    /// Fence violations, which must stay 0.
    pub violations: u64,
    /// Age of the oldest event that some index has not acknowledged; absent without an index.
    pub index_lag_seconds: Option<f64>,
    /// Resources that were stale at the moment of the sample; absent when nobody looked.
    pub stale_resources: Option<i64>,
}

impl SampleCounts {
    /// Counts one convergence.
    pub fn converged(&mut self, seconds: f64) {
        self.convergence_buckets
            .resize(CONVERGENCE_BOUNDS.len() + 1, 0);
        let bucket = CONVERGENCE_BOUNDS.partition_point(|bound| *bound < seconds);
        self.convergence_buckets[bucket] += 1;
        self.converged_total += 1;
        self.converged_within_target += u64::from(seconds <= CONVERGENCE_TARGET_SECONDS);
    }

    /// Adds what another replica or another moment counted. The gauges keep the worse of the two;
    /// `seconds` stays, since replicas count in the same time.
    pub fn absorb(&mut self, other: &Self) {
        for (trigger, count) in &other.reads {
            *self.reads.entry(trigger.clone()).or_default() += count;
        }
        for (outcome, count) in &other.outcomes {
            *self.outcomes.entry(outcome.clone()).or_default() += count;
        }
        self.notifications += other.notifications;
        self.versions += other.versions;
        self.notification_reads += other.notification_reads;
        self.notification_versions += other.notification_versions;
        if self.convergence_buckets.len() < other.convergence_buckets.len() {
            self.convergence_buckets
                .resize(other.convergence_buckets.len(), 0);
        }
        for (mine, theirs) in self
            .convergence_buckets
            .iter_mut()
            .zip(&other.convergence_buckets)
        {
            *mine += theirs;
        }
        self.converged_within_target += other.converged_within_target;
        self.converged_total += other.converged_total;
        self.violations += other.violations;
        self.index_lag_seconds = match (self.index_lag_seconds, other.index_lag_seconds) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        self.stale_resources = self.stale_resources.max(other.stale_resources);
    }

    /// The convergence below which the share `q` (0 to 1) of all lies: the upper bound of its bucket,
    /// never better than the truth. None without a convergence; the last bound when it lies above all.
    pub fn convergence_quantile(&self, q: f64) -> Option<f64> {
        let total: u64 = self.convergence_buckets.iter().sum();
        if total == 0 {
            return None;
        }
        let wanted = q.clamp(0.0, 1.0) * total as f64;
        let mut seen = 0;
        for (bucket, count) in self.convergence_buckets.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= wanted {
                return CONVERGENCE_BOUNDS
                    .get(bucket)
                    .or(CONVERGENCE_BOUNDS.last())
                    .copied();
            }
        }
        CONVERGENCE_BOUNDS.last().copied()
    }

    /// Reads that notifications caused per version they brought. None without a version.
    pub fn amplification(&self) -> Option<f64> {
        (self.notification_versions > 0)
            .then(|| self.notification_reads as f64 / self.notification_versions as f64)
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub replica: Uuid,
    pub at: DateTime<Utc>,
    pub counts: SampleCounts,
}

impl Store {
    /// Writes what this replica counted since its last sample, as of now by the database's clock.
    pub async fn insert_sample(&self, counts: &SampleCounts) -> Result<DateTime<Utc>, StoreError> {
        let written = sqlx::query_scalar(
            "insert into sample (replica, at, seconds, counts) values ($1, clock_timestamp(), $2, $3)
             returning at",
        )
        .bind(self.replica())
        .bind(counts.seconds)
        .bind(Json(counts))
        .fetch_one(self.pool())
        .await
        .map_err(StoreError::from);
        self.inner.writes.observe(Writer::Samples, &written);
        written
    }

    /// The samples after `from` up to `to`, oldest first; the newest of them when there are more than
    /// an answer holds.
    pub async fn samples_between(
        &self,
        from: DateTime<Utc>,
        to: DateTime<Utc>,
    ) -> Result<Vec<Sample>, StoreError> {
        let rows: Vec<(Uuid, DateTime<Utc>, f64, Json<SampleCounts>)> = sqlx::query_as(
            "select replica, at, seconds, counts from sample
             where at > $1 and at <= $2 order by at desc limit $3",
        )
        .bind(from)
        .bind(to)
        .bind(MAX_SAMPLES)
        .fetch_all(self.pool())
        .await?;
        let sample = |(replica, at, seconds, Json(mut counts)): (
            Uuid,
            DateTime<Utc>,
            f64,
            Json<SampleCounts>,
        )| {
            counts.seconds = seconds;
            Sample {
                replica,
                at,
                counts,
            }
        };
        Ok(rows.into_iter().rev().map(sample).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convergence_exactly_at_the_target_is_within_it() {
        let mut counts = SampleCounts::default();
        counts.converged(60.0);
        counts.converged(60.001);
        assert_eq!(
            (counts.converged_within_target, counts.converged_total),
            (1, 2)
        );
        assert_eq!(counts.convergence_quantile(0.5), Some(60.0));
        assert_eq!(counts.convergence_quantile(0.99), Some(120.0));
    }

    #[test]
    fn quantiles_reach_from_a_millisecond_to_beyond_all_bounds() {
        let mut counts = SampleCounts::default();
        assert_eq!(counts.convergence_quantile(0.5), None);
        counts.converged(0.001);
        assert_eq!(counts.convergence_quantile(0.99), Some(0.005));
        counts.converged(4000.0);
        assert_eq!(counts.convergence_quantile(0.99), Some(300.0));
    }

    #[test]
    fn replicas_add_up_and_gauges_keep_the_worse() {
        let mut a = SampleCounts {
            index_lag_seconds: Some(1.0),
            ..SampleCounts::default()
        };
        let mut b = SampleCounts {
            index_lag_seconds: Some(3.0),
            stale_resources: Some(2),
            ..SampleCounts::default()
        };
        b.reads.insert("Poll".into(), 4);
        b.converged(0.2);
        a.absorb(&b);
        a.absorb(&b);
        assert_eq!(a.reads["Poll"], 8);
        assert_eq!(a.converged_total, 2);
        assert_eq!(a.index_lag_seconds, Some(3.0));
        assert_eq!(a.stale_resources, Some(2));
    }
}

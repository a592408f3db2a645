//! The objectives: value against target, and how much of the error budget is left.
//!
//! Pure. Without observations an objective has no state but "no data": silence never counts as holding.

use fencepost_views::{Objective, ObjectiveState, SeriesPoint};

use super::index::LAG_TARGET_SECONDS;
use super::series::{Folded, Point};
use crate::sample::SampleCounts;

const CONVERGED_TARGET: f64 = 0.999;
const AMPLIFICATION_TARGET: f64 = 1.2;
/// The quantile of the lag that the target speaks of; the rest is its budget.
const LAG_QUANTILE: f64 = 0.99;
/// The burn rate is that of the last twelfth of the window: five minutes of an hour.
const BURN_SHARE: i32 = 12;

/// The four objectives over a range. `unanswered`: invalidations older than the target that no read
/// has answered yet; they are no sample, since they have not converged.
pub(super) fn objectives(folded: &Folded, unanswered: u64) -> Vec<Objective> {
    let mut whole = SampleCounts::default();
    for point in &folded.points {
        whole.absorb(&point.counts);
    }
    let burn_from = folded.to - (folded.to - folded.from) / BURN_SHARE;
    let mut recent = SampleCounts::default();
    for point in folded.points.iter().filter(|point| point.at > burn_from) {
        recent.absorb(&point.counts);
    }
    vec![
        fence_violations(folded, &whole, &recent),
        converged(folded, &whole, &recent, unanswered),
        amplification(folded, &whole, &recent),
        index_lag(folded, burn_from),
    ]
}

fn fence_violations(folded: &Folded, whole: &SampleCounts, recent: &SampleCounts) -> Objective {
    let settled: u64 = whole.outcomes.values().sum();
    let seen = settled > 0 || whole.violations > 0;
    Objective {
        name: "fence_violations".to_owned(),
        title: "Fence violations".to_owned(),
        unit: "count".to_owned(),
        value: seen.then_some(whole.violations as f64),
        target: 0.0,
        at_least: false,
        state: state(seen, whole.violations == 0),
        // There is no budget: one is too many, and then no rate describes it.
        budget_left: seen.then_some(if whole.violations == 0 { 1.0 } else { 0.0 }),
        burn_rate: (seen && recent.violations == 0).then_some(0.0),
        observations: settled as i64,
        points: points(folded, |point| Some(point.counts.violations as f64)),
    }
}

fn converged(
    folded: &Folded,
    whole: &SampleCounts,
    recent: &SampleCounts,
    unanswered: u64,
) -> Objective {
    let total = whole.converged_total + unanswered;
    let within = whole.converged_within_target;
    let value = (total > 0).then(|| within as f64 / total as f64);
    let late = |counts: &SampleCounts| {
        (counts.converged_total - counts.converged_within_target.min(counts.converged_total))
            + unanswered
    };
    let budget = Budget::of_share(1.0 - CONVERGED_TARGET);
    Objective {
        name: "converged_60s".to_owned(),
        title: "Converged within 60 s".to_owned(),
        unit: "ratio".to_owned(),
        value,
        target: CONVERGED_TARGET,
        at_least: true,
        state: state(
            value.is_some(),
            value.is_some_and(|value| value >= CONVERGED_TARGET),
        ),
        budget_left: budget.left(late(whole) as f64, total as f64),
        burn_rate: budget.burn(
            late(recent) as f64,
            (recent.converged_total + unanswered) as f64,
        ),
        observations: total as i64,
        points: points(folded, |point| {
            let counts = &point.counts;
            (counts.converged_total > 0)
                .then(|| counts.converged_within_target as f64 / counts.converged_total as f64)
        }),
    }
}

fn amplification(folded: &Folded, whole: &SampleCounts, recent: &SampleCounts) -> Objective {
    let value = whole.amplification();
    let extra = |counts: &SampleCounts| {
        counts
            .notification_reads
            .saturating_sub(counts.notification_versions) as f64
    };
    let budget = Budget::of_share(AMPLIFICATION_TARGET - 1.0);
    Objective {
        name: "read_amplification".to_owned(),
        title: "Read amplification".to_owned(),
        unit: "reads per version".to_owned(),
        value,
        target: AMPLIFICATION_TARGET,
        at_least: false,
        state: state(
            value.is_some(),
            value.is_some_and(|value| value < AMPLIFICATION_TARGET),
        ),
        budget_left: budget.left(extra(whole), whole.notification_versions as f64),
        burn_rate: budget.burn(extra(recent), recent.notification_versions as f64),
        observations: whole.notification_versions as i64,
        points: points(folded, |point| point.counts.amplification()),
    }
}

fn index_lag(folded: &Folded, burn_from: chrono::DateTime<chrono::Utc>) -> Objective {
    let lags = &folded.lags;
    let value = quantile(lags, LAG_QUANTILE);
    let budget = Budget::of_share(1.0 - LAG_QUANTILE);
    let late = lags
        .iter()
        .filter(|lag| **lag >= LAG_TARGET_SECONDS)
        .count();
    let recent: Vec<f64> = folded
        .points
        .iter()
        .filter(|point| point.at > burn_from)
        .filter_map(|point| point.counts.index_lag_seconds)
        .collect();
    let recent_late = recent
        .iter()
        .filter(|lag| **lag >= LAG_TARGET_SECONDS)
        .count();
    Objective {
        name: "index_lag".to_owned(),
        title: "Index lag, p99".to_owned(),
        unit: "seconds".to_owned(),
        value,
        target: LAG_TARGET_SECONDS,
        at_least: false,
        state: state(
            value.is_some(),
            value.is_some_and(|value| value < LAG_TARGET_SECONDS),
        ),
        budget_left: budget.left(late as f64, lags.len() as f64),
        burn_rate: budget.burn(recent_late as f64, recent.len() as f64),
        observations: lags.len() as i64,
        points: points(folded, |point| point.counts.index_lag_seconds),
    }
}

fn state(seen: bool, holds: bool) -> ObjectiveState {
    match (seen, holds) {
        (false, _) => ObjectiveState::NoData,
        (true, true) => ObjectiveState::Holds,
        (true, false) => ObjectiveState::Violated,
    }
}

fn points(folded: &Folded, value: impl Fn(&Point) -> Option<f64>) -> Vec<SeriesPoint> {
    folded
        .points
        .iter()
        .filter_map(|point| {
            value(point).map(|value| SeriesPoint {
                at: point.at,
                value,
            })
        })
        .collect()
}

/// The value below which the share `q` of an ascending list lies.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "q is 0 to 1, so the place is within the list"
)]
fn quantile(ascending: &[f64], q: f64) -> Option<f64> {
    let place = (ascending.len() as f64 * q).ceil() as usize;
    ascending.get(place.max(1) - 1).copied()
}

/// How many of the total may go wrong.
struct Budget {
    share: f64,
}

impl Budget {
    fn of_share(share: f64) -> Self {
        Self { share }
    }

    fn left(&self, bad: f64, total: f64) -> Option<f64> {
        (total > 0.0).then(|| (1.0 - bad / (total * self.share)).clamp(0.0, 1.0))
    }

    fn burn(&self, bad: f64, total: f64) -> Option<f64> {
        (total > 0.0).then(|| bad / (total * self.share))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;

    fn folded(counts: Vec<SampleCounts>) -> Folded {
        let from: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut lags: Vec<f64> = counts
            .iter()
            .filter_map(|counts| counts.index_lag_seconds)
            .collect();
        lags.sort_by(f64::total_cmp);
        let points = counts
            .into_iter()
            .enumerate()
            .map(|(step, counts)| Point {
                at: from + TimeDelta::minutes(5 * (step as i64 + 1)),
                counts,
                ..Point::default()
            })
            .collect();
        Folded {
            from,
            to: from + TimeDelta::hours(1),
            step_seconds: 300.0,
            points,
            lags,
        }
    }

    fn named(objectives: &[Objective], name: &str) -> Objective {
        objectives
            .iter()
            .find(|objective| objective.name == name)
            .unwrap()
            .clone()
    }

    #[test]
    fn silence_is_no_data_and_never_holds() {
        for objective in objectives(&folded(vec![SampleCounts::default(); 12]), 0) {
            assert_eq!(
                objective.state,
                ObjectiveState::NoData,
                "{}",
                objective.name
            );
            assert_eq!(
                (objective.value, objective.budget_left),
                (None, None),
                "{}",
                objective.name
            );
        }
    }

    #[test]
    fn half_of_the_budget_is_spent_at_half_of_the_errors_allowed() {
        let counts = SampleCounts {
            converged_total: 10_000,
            converged_within_target: 9_995,
            ..SampleCounts::default()
        };
        let objective = named(&objectives(&folded(vec![counts]), 0), "converged_60s");
        assert_eq!(objective.state, ObjectiveState::Holds);
        assert!((objective.budget_left.unwrap() - 0.5).abs() < 1e-6);
        assert_eq!(
            objective.burn_rate, None,
            "nothing was observed in the last twelfth"
        );
    }

    #[test]
    fn what_never_converges_counts_as_late() {
        let counts = SampleCounts {
            converged_total: 10,
            converged_within_target: 10,
            ..SampleCounts::default()
        };
        let objective = named(&objectives(&folded(vec![counts]), 10), "converged_60s");
        assert_eq!(
            (objective.state, objective.value),
            (ObjectiveState::Violated, Some(0.5))
        );
        assert_eq!(objective.budget_left, Some(0.0));
    }

    #[test]
    fn the_amplification_target_itself_is_a_violation() {
        let counts = |reads| SampleCounts {
            notification_reads: reads,
            notification_versions: 10,
            ..SampleCounts::default()
        };
        let at = named(
            &objectives(&folded(vec![counts(12)]), 0),
            "read_amplification",
        );
        let below = named(
            &objectives(&folded(vec![counts(11)]), 0),
            "read_amplification",
        );
        assert_eq!(
            (at.state, below.state),
            (ObjectiveState::Violated, ObjectiveState::Holds)
        );
    }

    #[test]
    fn one_late_sample_of_two_hundred_is_within_p99_and_one_violation_is_not_within_anything() {
        let mut counts = vec![
            SampleCounts {
                index_lag_seconds: Some(1.0),
                ..SampleCounts::default()
            };
            199
        ];
        counts.push(SampleCounts {
            index_lag_seconds: Some(99.0),
            violations: 1,
            ..SampleCounts::default()
        });
        let objectives = objectives(&folded(counts), 0);
        assert_eq!(named(&objectives, "index_lag").value, Some(1.0));
        assert_eq!(
            named(&objectives, "fence_violations").state,
            ObjectiveState::Violated
        );
    }
}

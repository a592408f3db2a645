//! The overview's charts, from the samples kept in Postgres.

use fencepost_views::{Sample, Series};
use leptos::prelude::*;

use super::plot::{Height, MOST_LINES, Plan, Plot, Row, Window};
use crate::figures;

/// Triggers of a read, bottom to top. The chart crate paints lines in the order of their names, so areas are
/// stacked against the alphabet: the topmost is painted first and each lower one over it.
const TRIGGERS: [&str; 7] = [
    "TombstoneCheck",
    "Poll",
    "Notification",
    "Manual",
    "Gap",
    "Baseline",
    "Audit",
];
const TRIGGER_NAMES: &[&str] = &[
    "tombstone check",
    "poll",
    "notification",
    "manual",
    "gap",
    "baseline",
    "audit",
];

/// What convergence is promised: 99.9 % within a minute.
const PROMISED_SECONDS: f64 = 60.0;
/// What amplification is promised: fewer reads than this for a version.
const PROMISED_AMPLIFICATION: f64 = 1.2;

#[component]
pub fn Charts(series: Signal<Series>) -> impl IntoView {
    let window = move |values: fn(&Sample) -> [f64; MOST_LINES]| {
        Signal::derive(move || {
            series.with(|series| Window {
                from: series.from,
                to: series.to,
                rows: series
                    .samples
                    .iter()
                    .map(|sample| Row {
                        at: sample.at,
                        values: values(sample),
                    })
                    .collect(),
            })
        })
    };
    view! {
        <section aria-labelledby="charts">
            <h2 id="charts" class="section">"What happened"</h2>
            <div class="plots">
                <Plot
                    plan=Plan {
                        title: "Reads by trigger",
                        unit: "a second",
                        names: TRIGGER_NAMES,
                        stacked: true,
                        height: Height::Linear,
                        target: None,
                        write: figures::number,
                        least_top: 0.1,
                    }
                    window=window(reads)
                />
                <Plot
                    plan=Plan {
                        title: "Convergence",
                        unit: "invalidation to answer, by powers of ten",
                        names: &["p50", "p99"],
                        stacked: false,
                        height: Height::Decades,
                        target: Some((PROMISED_SECONDS, "promised 60 s")),
                        write: figures::duration,
                        least_top: 0.0,
                    }
                    window=window(|sample| lines([sample.convergence_p50_seconds, sample.convergence_p99_seconds]))
                />
                <Plot
                    plan=Plan {
                        title: "Amplification",
                        unit: "reads per version",
                        names: &["amplification"],
                        stacked: false,
                        height: Height::Linear,
                        target: Some((PROMISED_AMPLIFICATION, "promised < 1.2")),
                        write: figures::number,
                        least_top: 1.6,
                    }
                    window=window(|sample| lines([sample.amplification]))
                />
                <Plot
                    plan=Plan {
                        title: "Index lag",
                        unit: "oldest unconfirmed event",
                        names: &["lag"],
                        stacked: false,
                        height: Height::Linear,
                        target: None,
                        write: figures::duration,
                        least_top: 1.0,
                    }
                    window=window(|sample| lines([sample.index_lag_seconds]))
                />
            </div>
        </section>
    }
}

fn reads(sample: &Sample) -> [f64; MOST_LINES] {
    TRIGGERS.map(|trigger| {
        sample
            .reads
            .iter()
            .filter(|read| read.trigger == trigger)
            .map(|read| read.per_second)
            .sum()
    })
}

fn lines<const LINES: usize>(values: [Option<f64>; LINES]) -> [f64; MOST_LINES] {
    let mut row = [f64::NAN; MOST_LINES];
    for (slot, value) in row.iter_mut().zip(values) {
        *slot = value.unwrap_or(f64::NAN);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stacked_against_the_alphabet() {
        assert_eq!(TRIGGERS.map(figures::camel_words).as_slice(), TRIGGER_NAMES);
        assert!(TRIGGER_NAMES.windows(2).all(|pair| pair[0] > pair[1]));
    }
}

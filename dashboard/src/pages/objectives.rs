//! The objectives: value now, target as a line, budget left and burn. Violated first; "no data yet" is its own state.

use fencepost_views::{Objective, ObjectiveState, Overview};
use leptos::prelude::*;

use crate::figures;
use crate::parts::{Points, Spark, Tone};

#[component]
pub fn Objectives(overview: Signal<Overview>) -> impl IntoView {
    let sorted = Memo::new(move |_| {
        let mut objectives = overview.read().objectives.clone();
        objectives.sort_by_key(|objective| match objective.state {
            ObjectiveState::Violated => 0,
            ObjectiveState::Holds => 1,
            ObjectiveState::NoData => 2,
        });
        objectives
    });
    view! {
        <section aria-labelledby="objectives">
            <h2 id="objectives" class="section">"Objectives"</h2>
            <ul class="objectives">
                {move || sorted.get().into_iter().map(|objective| view! { <Card objective=objective /> }).collect_view()}
            </ul>
        </section>
    }
}

#[component]
fn Card(objective: Objective) -> impl IntoView {
    let (tone, word) = match objective.state {
        ObjectiveState::Holds => (Tone::Good, "holds"),
        ObjectiveState::Violated => (Tone::Bad, "violated"),
        ObjectiveState::NoData => (Tone::Quiet, "no data yet"),
    };
    let value = objective
        .value
        .map_or_else(|| "–".to_owned(), |value| written(&objective.unit, value));
    let promise = format!(
        "promised {} {}",
        if objective.at_least {
            "≥"
        } else if objective.target == 0.0 {
            "exactly"
        } else {
            "≤"
        },
        written(&objective.unit, objective.target),
    );
    let (low, high) = bounds(&objective);
    let points = shares(&objective);
    let drawn = !points.is_empty() && objective.state != ObjectiveState::NoData;
    let observations = match objective.observations {
        0 => "no observation in this window".to_owned(),
        count => format!("from {} observations", figures::count(count)),
    };
    view! {
        <li class=format!("objective {}", tone.class())>
            <div class="objective-head">
                <h3>{objective.title.clone()}</h3>
                <span class=format!("badge {}", tone.class())>
                    <crate::parts::ToneShape tone=tone />
                    {word}
                </span>
            </div>
            <p class="objective-value num" title=observations>{value}</p>
            <p class="objective-promise muted num">{promise}</p>
            <div class="objective-chart">
                {if drawn {
                    view! { <Spark points=points low=low high=high target=objective.target /> }.into_any()
                } else {
                    view! { <span class="muted">"nothing measured in this window"</span> }.into_any()
                }}
            </div>
            <dl class="objective-budget num">
                <div>
                    <dt>"budget left"</dt>
                    <dd>{objective.budget_left.map_or_else(|| "–".to_owned(), figures::percent)}</dd>
                </div>
                <div>
                    <dt title="Budget spent per budget earned, lately; 1 spends it exactly">"burn"</dt>
                    <dd>
                        {objective.burn_rate.map_or_else(|| "–".to_owned(), |burn| format!("{}×", figures::number(burn)))}
                    </dd>
                </div>
            </dl>
        </li>
    }
}

fn written(unit: &str, value: f64) -> String {
    match unit {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "counts are whole and small"
        )]
        "count" => figures::count(value.round() as i64),
        "ratio" => figures::percent(value),
        "seconds" => figures::duration(value),
        _ => figures::number(value),
    }
}

/// The chart's bottom and top: both the values and the target are inside.
fn bounds(objective: &Objective) -> (f64, f64) {
    let values = objective
        .points
        .iter()
        .map(|point| point.value)
        .chain([objective.target]);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if objective.unit == "ratio" {
        return ((low - (1.0 - low) * 0.2).max(0.0), 1.0);
    }
    let low = if objective.unit == "reads per version" {
        low.min(1.0) * 0.98
    } else {
        0.0
    };
    (
        low,
        if high > low {
            low + (high - low) * 1.15
        } else {
            low + 1.0
        },
    )
}

fn shares(objective: &Objective) -> Points {
    let (Some(first), Some(last)) = (objective.points.first(), objective.points.last()) else {
        return Vec::new();
    };
    let whole = figures::seconds_between(first.at, last.at).max(1.0);
    objective
        .points
        .iter()
        .map(|point| {
            (
                figures::seconds_between(first.at, point.at) / whole,
                Some(point.value),
            )
        })
        .collect()
}

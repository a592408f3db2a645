//! A chart's frame: grid, units and target, drawn by the server and kept; in it the lines, as plain SVG until
//! hydration and by `leptos-chartistry` from then on, with its values on hover.
//!
//! The chart crate measures its box in the browser and so draws nothing on the server. The frame
//! gives both the same box and the same bounds: taking over moves nothing.

use chrono::{DateTime, Utc};
use leptos::prelude::*;
use leptos_chartistry::{
    AspectRatio, Chart, Colour, Interpolation, IntoInner as _, Line, Padding, Series, Stack,
    TickLabels, Tooltip, TooltipPlacement, TooltipSortBy, XGuideLine,
};

use crate::clock::Clock;
use crate::figures;
use crate::parts::Spark;

/// Lines a chart can have: the seven triggers of a read.
pub const MOST_LINES: usize = 7;

/// A moment with the value of each line; not a number where there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub at: DateTime<Utc>,
    pub values: [f64; MOST_LINES],
}

/// How values are placed on the height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Height {
    /// From zero to a round number above the largest.
    Linear,
    /// Seconds by powers of ten, 10 ms to 1000 s: a promise of a minute and answers of milliseconds in one picture.
    Decades,
}

/// What a chart shows.
#[derive(Debug, Clone)]
pub struct Plan {
    pub title: &'static str,
    pub unit: &'static str,
    /// Names of the lines, bottom to top when stacked.
    pub names: &'static [&'static str],
    pub stacked: bool,
    pub height: Height,
    pub target: Option<(f64, &'static str)>,
    pub write: fn(f64) -> String,
    /// Smallest top of a linear height, so that noise near zero does not fill the picture.
    pub least_top: f64,
}

/// Rows with the window that they cover.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    pub rows: Vec<Row>,
}

/// Decades shown: 10^-2 to 10^3 seconds.
const DECADES: (f64, f64) = (-2.0, 3.0);

impl Plan {
    fn position(&self, value: f64) -> f64 {
        match self.height {
            Height::Linear => value,
            Height::Decades => value.max(1e-6).log10().clamp(DECADES.0, DECADES.1),
        }
    }

    fn bounds(&self, rows: &[Row]) -> (f64, f64) {
        if self.height == Height::Decades {
            return DECADES;
        }
        let highest = rows
            .iter()
            .map(|row| {
                let values = row.values[..self.names.len()]
                    .iter()
                    .copied()
                    .filter(|value| value.is_finite());
                if self.stacked {
                    values.sum()
                } else {
                    values.fold(0.0, f64::max)
                }
            })
            .chain(self.target.map(|(target, _)| target))
            .fold(self.least_top, f64::max);
        (0.0, round_up(highest))
    }

    /// Where the grid lies and what is written there.
    fn grid(&self, bounds: (f64, f64)) -> Vec<(f64, String)> {
        match self.height {
            Height::Linear => (0..=4)
                .map(|quarter| {
                    let share = f64::from(quarter) / 4.0;
                    (
                        share,
                        if quarter % 2 == 0 {
                            (self.write)(bounds.1 * share)
                        } else {
                            String::new()
                        },
                    )
                })
                .collect(),
            Height::Decades => (0..=5)
                .map(|decade| {
                    let value = 10_f64.powi(decade - 2);
                    let written = if value < 1.0 {
                        format!("{:.0} ms", value * 1e3)
                    } else {
                        format!("{value:.0} s")
                    };
                    (f64::from(decade) / 5.0, written)
                })
                .collect(),
        }
    }
}

/// The next number whose quarters are round: 1, 2, 4 or 8 times a power of ten.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 4.0, 8.0, 10.0]
        .into_iter()
        .map(|step| step * unit)
        .find(|top| *top >= value * 0.999)
        .unwrap_or(value)
}

/// Five moments along the bottom.
fn moments(from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<(f64, String)> {
    let format = match (to - from).num_hours() {
        0..=47 => "%H:%M",
        _ => "%-d %b",
    };
    (0..=4)
        .map(|quarter| {
            (
                f64::from(quarter) / 4.0,
                (from + (to - from) * quarter / 4)
                    .format(format)
                    .to_string(),
            )
        })
        .collect()
}

/// The chart with its head and frame.
#[component]
#[allow(clippy::too_many_lines, reason = "one view is one tree")]
pub fn Plot(plan: Plan, #[prop(into)] window: Signal<Window>) -> impl IntoView {
    let bounds = {
        let plan = plan.clone();
        Memo::new(move |_| window.with(|window| plan.bounds(&window.rows)))
    };
    let latest = {
        let (names, write) = (plan.names, plan.write);
        move |line: usize| {
            let last = window.with(|window| {
                window
                    .rows
                    .iter()
                    .rev()
                    .map(|row| row.values[line])
                    .find(|value| value.is_finite())
            });
            debug_assert!(line < names.len());
            last.map_or_else(|| "–".to_owned(), write)
        }
    };
    let any = Memo::new({
        let lines = plan.names.len();
        move |_| {
            window.with(|window| {
                window
                    .rows
                    .iter()
                    .any(|row| row.values[..lines].iter().any(|value| value.is_finite()))
            })
        }
    });
    let grid = {
        let plan = plan.clone();
        move || {
            plan.grid(bounds.get())
                .into_iter()
                .map(|(share, text)| {
                    let y = format!("{:.2}%", 100.0 - share * 100.0);
                    view! {
                        <line class="grid" x1="0" x2="100%" y1=y.clone() y2=y.clone() />
                        <text class="tick" x="-8" y=y dy="0.32em" text-anchor="end">{text}</text>
                    }
                })
                .collect_view()
        }
    };
    let below = move || {
        let (from, to) = window.with(|window| (window.from, window.to));
        moments(from, to)
            .into_iter()
            .map(|(share, text)| {
                let anchor = if share < 0.01 { "start" } else if share > 0.99 { "end" } else { "middle" };
                view! { <text class="tick" x=format!("{:.2}%", share * 100.0) y="100%" dy="18" text-anchor=anchor>{text}</text> }
            })
            .collect_view()
    };
    let target = plan.target.map(|(value, name)| {
        let at = plan.position(value);
        let y = Memo::new(move |_| {
            let (low, high) = bounds.get();
            format!("{:.2}%", 100.0 - (at - low) / (high - low) * 100.0)
        });
        view! {
            <line class="target" x1="0" x2="100%" y1=y y2=y />
            <text class="target-name" x="100%" y=y dx="-4" dy="-5" text-anchor="end">{name}</text>
        }
    });
    let legend = plan
        .names
        .iter()
        .enumerate()
        .rev()
        .map(|(line, name)| {
            view! {
                <li class=format!("series-{}", line + 1)>
                    <svg viewBox="0 0 14 10" width="14" height="10" aria-hidden="true">
                        {if plan.stacked {
                            view! { <path class="swatch" d="M0 1h14v8H0z" /> }.into_any()
                        } else {
                            view! { <path class="swatch-line" d="M0 5h14" /> }.into_any()
                        }}
                    </svg>
                    <span>{*name}</span>
                    <span class="num strong">{move || latest(line)}</span>
                </li>
            }
        })
        .collect_view();
    view! {
        <figure class="plot" class:areas=plan.stacked>
            <figcaption>
                <h3>{plan.title}</h3>
                <span class="muted">{plan.unit}</span>
                <ul class="legend">{legend}</ul>
            </figcaption>
            <div class="plot-box">
                <svg class="frame" width="100%" height="100%" aria-hidden="true">{grid} {target} {below}</svg>
                <div class="lines" class:stacked=plan.stacked>
                    <Lines plan=plan.clone() window=window bounds=bounds />
                </div>
                <p class="no-data muted" class:hidden=any>"no data yet in this window"</p>
            </div>
        </figure>
    }
}

/// The lines: a sketch first, the interactive chart after hydration.
#[component]
fn Lines(plan: Plan, window: Signal<Window>, bounds: Memo<(f64, f64)>) -> impl IntoView {
    let now = Clock::signal();
    let hydrated = Memo::new(move |_| now.with(Option::is_some));
    move || {
        if hydrated.get() {
            view! { <Interactive plan=plan.clone() window=window bounds=bounds /> }.into_any()
        } else {
            view! { <Sketch plan=plan.clone() window=window bounds=bounds /> }.into_any()
        }
    }
}

#[component]
fn Sketch(plan: Plan, window: Signal<Window>, bounds: Memo<(f64, f64)>) -> impl IntoView {
    const NAMES: [&str; MOST_LINES] = [
        "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7",
    ];
    // Topmost first, so that each lower area covers its part of the one above it.
    (0..plan.names.len())
        .rev()
        .map(|line| {
            let plan = plan.clone();
            let points = Memo::new(move |_| {
                window.with(|window| {
                    let whole = figures::seconds_between(window.from, window.to).max(1.0);
                    window
                        .rows
                        .iter()
                        .map(|row| {
                            let value = if plan.stacked {
                                row.values[..=line]
                                    .iter()
                                    .filter(|value| value.is_finite())
                                    .sum()
                            } else {
                                row.values[line]
                            };
                            let share = figures::seconds_between(window.from, row.at) / whole;
                            (share, value.is_finite().then(|| plan.position(value)))
                        })
                        .collect::<Vec<_>>()
                })
            });
            view! {
                <Spark
                    points=points
                    low=Signal::derive(move || bounds.get().0)
                    high=Signal::derive(move || bounds.get().1)
                    series=NAMES[line]
                />
            }
        })
        .collect_view()
}

#[component]
fn Interactive(plan: Plan, window: Signal<Window>, bounds: Memo<(f64, f64)>) -> impl IntoView {
    let line = |index: usize| {
        let (plan, name) = (plan.clone(), plan.names[index]);
        Line::new(move |row: &Row| {
            let value = row.values[index];
            if value.is_finite() {
                plan.position(value)
            } else {
                f64::NAN
            }
        })
        .with_name(name)
        .with_width(1.5)
        // Straight: the chart crate's curves overshoot between samples, and two samples of one moment break them.
        .with_interpolation(Interpolation::Linear)
        // A key, not a colour: the stylesheet maps it to the theme's series.
        .with_colour(Colour::from_rgb(
            0,
            0,
            u8::try_from(index + 1).unwrap_or(u8::MAX),
        ))
    };
    let series = Series::new(|row: &Row| row.at);
    let series = if plan.stacked {
        series.stack(Stack::from(
            (0..plan.names.len()).map(line).collect::<Vec<_>>(),
        ))
    } else {
        series.lines((0..plan.names.len()).map(line).collect::<Vec<_>>())
    };
    let (min_x, max_x, min_y, max_y) = (series.min_x, series.max_x, series.min_y, series.max_y);
    Effect::new(move |_| {
        let (low, high) = bounds.get();
        min_y.set(Some(low));
        max_y.set(Some(high));
        window.with(|window| {
            min_x.set(Some(window.from));
            max_x.set(Some(window.to));
        });
    });
    let stacked = plan.stacked;
    let rows = Signal::derive(move || {
        window.with(|window| {
            if stacked {
                closed(&window.rows)
            } else {
                window.rows.clone()
            }
        })
    });
    let (write, height) = (plan.write, plan.height);
    let tooltip = Tooltip::new(
        TooltipPlacement::LeftCursor,
        TickLabels::timestamps()
            .with_format(|at: &DateTime<Utc>, _| at.format("%-d %b %H:%M:%S").to_string()),
        TickLabels::aligned_floats().with_format(move |value: &f64, _| {
            if !value.is_finite() {
                return "–".to_owned();
            }
            write(if height == Height::Decades {
                10_f64.powf(*value)
            } else {
                *value
            })
        }),
    )
    .with_sort_by(TooltipSortBy::Descending);
    view! {
        <Chart
            aspect_ratio=AspectRatio::from_env()
            font_height=12.0
            font_width=7.0
            padding=Padding::zero()
            inner=[XGuideLine::over_data().into_inner()]
            tooltip=tooltip
            series=series
            data=rows
        />
    }
}

/// A stacked line is filled by the stylesheet, so it begins and ends on the ground.
fn closed(rows: &[Row]) -> Vec<Row> {
    let ground = |row: &Row| Row {
        at: row.at,
        values: [0.0; MOST_LINES],
    };
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Vec::new();
    };
    let mut closed = Vec::with_capacity(rows.len() + 2);
    closed.push(ground(first));
    closed.extend_from_slice(rows);
    closed.push(ground(last));
    closed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp)]
    use super::*;

    #[test]
    fn a_top_has_round_quarters_and_holds_the_value() {
        for (value, top) in [
            (0.0, 1.0),
            (0.7, 0.8),
            (1.0, 1.0),
            (3.2, 4.0),
            (42.0, 80.0),
            (81.0, 100.0),
        ] {
            assert!(
                (round_up(value) - top).abs() < 1e-9,
                "{value}: {}",
                round_up(value)
            );
        }
    }

    #[test]
    fn an_area_begins_and_ends_on_the_ground() {
        let row = Row {
            at: DateTime::UNIX_EPOCH,
            values: [3.0; MOST_LINES],
        };
        let closed = closed(&[row.clone(), row]);
        assert_eq!(closed.len(), 4);
        assert_eq!(closed[0].values, [0.0; MOST_LINES]);
        assert_eq!(closed[3].values, [0.0; MOST_LINES]);
        assert!(super::closed(&[]).is_empty());
    }
}

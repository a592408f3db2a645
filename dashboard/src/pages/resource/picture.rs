//! The picture that only a ledger of reads can draw: bars from issue to answer, the watermark as steps above them,
//! notifications and gaps between. A late read behind a newer one is seen to change nothing.
//!
//! Plain SVG in shares of the width, so the server draws it for any screen. One tab stop: arrow keys step
//! through the reads, and what is under the pointer or the keys is told below in words.

use fencepost_views::{Receipt, Timeline};
use leptos::prelude::*;

use super::glyph::{Glyph, MARKS, MarkShape, OUTCOMES, Outcome};
use super::place::Place;
use crate::figures;
use crate::lanes::{Bar, Picture, Placed, Scale, Step};
use crate::parts::Ranges;
use crate::range;

/// Heights in pixels of the bands, top to bottom.
const WATERMARK: f64 = 76.0;
const MARK_BAND: f64 = 24.0;
const LANE: f64 = 20.0;
const BAR: f64 = 14.0;
const AXIS: f64 = 26.0;
/// Lanes that always have their room, so that a second read in flight does not move the page.
const LEAST_LANES: usize = 3;

#[component]
pub fn PictureSection(timeline: Signal<Timeline>, place: Memo<Place>) -> impl IntoView {
    let scale = Memo::new(move |_| place.read().scale);
    let picture =
        Memo::new(move |_| timeline.with(|timeline| Picture::lay_out(timeline, scale.get())));
    let chosen = RwSignal::new(None::<String>);
    let range = Signal::derive(move || place.read().range);
    let address = move |scale: Scale| {
        move || {
            Place {
                scale,
                ..place.get()
            }
            .address()
        }
    };
    let scale_link = move |value: Scale, word: &'static str, title: &'static str| {
        view! {
            <a href=address(value) title=title data-noscroll="true" aria-current=move || (scale.get() == value).then_some("true")>
                {word}
            </a>
        }
    };
    let step = move |event: leptos::ev::KeyboardEvent| {
        let ids: Vec<String> = picture.with_untracked(|picture| {
            picture
                .bars
                .iter()
                .map(|bar| bar.read.request_id.clone())
                .collect()
        });
        let now =
            chosen.with_untracked(|chosen| ids.iter().position(|id| Some(id) == chosen.as_ref()));
        let next = match (event.key().as_str(), now) {
            ("ArrowRight", Some(now)) => (now + 1).min(ids.len().saturating_sub(1)),
            ("ArrowLeft", Some(now)) => now.saturating_sub(1),
            ("ArrowRight" | "Home", _) => 0,
            ("ArrowLeft" | "End", _) => ids.len().saturating_sub(1),
            _ => return,
        };
        event.prevent_default();
        chosen.set(ids.get(next).cloned());
    };
    view! {
        <section class="picture-section" aria-labelledby="picture">
            <div class="section-row">
                <h2 id="picture" class="section">"Reads against the watermark"</h2>
                <div class="controls">
                    <nav class="segments" aria-label="Scale">
                        {scale_link(Scale::Time, "time", "Distance is time")}
                        {scale_link(Scale::Order, "order", "Each event as far from the next: overlaps of milliseconds are seen")}
                    </nav>
                    <Ranges
                        among=range::PICTURE
                        chosen=range
                        address=move |word| {
                            let range = range::Range::parse(Some(word), range::PICTURE, "15m");
                            Place { range, ..place.get() }.address()
                        }
                    />
                </div>
            </div>
            <div class="picture" tabindex="0" role="group" aria-label="Reads of this window; the arrow keys step through them" on:keydown=step>
                <Drawing picture=picture timeline=timeline chosen=chosen />
            </div>
            <Told picture=picture chosen=chosen />
            <Legend />
            {move || {
                let (left_out, truncated) = (picture.read().left_out, timeline.read().truncated);
                (left_out > 0 || truncated)
                    .then(|| {
                        view! {
                            <p class="muted small">
                                {if left_out > 0 {
                                    format!("By order the newest {} reads are drawn; {left_out} older ones of this window are in the table.", crate::lanes::MOST_ORDERED)
                                } else {
                                    "The window has more than 500 reads; the newest are drawn. Choose a shorter one to see the rest.".to_owned()
                                }}
                            </p>
                        }
                    })
            }}
            <AsTable timeline=timeline />
        </section>
    }
}

fn percent(share: f64) -> String {
    format!("{:.3}%", share * 100.0)
}

#[component]
fn Drawing(
    picture: Memo<Picture>,
    timeline: Signal<Timeline>,
    chosen: RwSignal<Option<String>>,
) -> impl IntoView {
    let lanes = Memo::new(move |_| picture.read().lanes.max(LEAST_LANES));
    let bars_top = WATERMARK + MARK_BAND + 8.0;
    #[allow(clippy::cast_precision_loss, reason = "at most eight lanes")]
    let lanes_end = Memo::new(move |_| bars_top + lanes.get() as f64 * LANE);
    let height = move || format!("{}", lanes_end.get() + AXIS);
    let summary = move || timeline.with(summary);
    view! {
        <svg class="drawing" width="100%" height=height role="img" aria-label=summary>
            <defs>
                <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
                    <rect class="hatch-ground" width="6" height="6" />
                    <rect class="hatch-line" width="2.500" height="6" />
                </pattern>
            </defs>
            {move || {
                let end = lanes_end.get();
                picture
                    .read()
                    .ticks
                    .iter()
                    .map(|(share, text)| {
                        let anchor = if *share <= 0.0 { "start" } else if *share >= 1.0 { "end" } else { "middle" };
                        let x = percent(*share);
                        view! {
                            <line class="grid" x1=x.clone() x2=x.clone() y1="0" y2=end.to_string() />
                            <text class="tick" x=x y=(end + 17.0).to_string() text-anchor=anchor>{text.clone()}</text>
                        }
                    })
                    .collect_view()
            }}
            <text class="band" x="0" y="11">"watermark"</text>
            <line class="ground" x1="0" x2="100%" y1=WATERMARK.to_string() y2=WATERMARK.to_string() />
            {move || picture.with(|picture| steps(&picture.steps))}
            {move || picture.with(|picture| picture.marks.iter().map(|mark| placed(mark, lanes_end.get())).collect_view())}
            <For each=move || picture.get().bars key=|bar| format!("{bar:?}") let:bar>
                <ReadBar bar=bar top=bars_top chosen=chosen picture=picture />
            </For>
            {move || {
                picture
                    .read()
                    .bars
                    .is_empty()
                    .then(|| view! { <text class="none" x="50%" y=(bars_top + LANE).to_string() text-anchor="middle">"no read in this window"</text> })
            }}
        </svg>
    }
}

/// Height of an ordinal within the watermark's band.
fn level(ordinal: i64, low: i64, high: i64) -> f64 {
    if high <= low {
        return WATERMARK - 26.0;
    }
    #[allow(clippy::cast_precision_loss, reason = "ordinals of one window")]
    let share = (ordinal - low) as f64 / (high - low) as f64;
    (WATERMARK - 12.0) - share * (WATERMARK - 40.0)
}

/// The step line, with the ordinal at each rise that has room for it.
fn steps(steps: &[Step]) -> AnyView {
    const ROOM: f64 = 0.035;
    let low = steps
        .iter()
        .map(|step| step.ordinal)
        .min()
        .unwrap_or_default();
    let high = steps
        .iter()
        .map(|step| step.ordinal)
        .max()
        .unwrap_or_default();
    let mut labelled = -1.0;
    steps
        .iter()
        .enumerate()
        .map(|(place, step)| {
            let y = level(step.ordinal, low, high);
            let until = steps.get(place + 1).map_or(1.0, |next| next.at);
            let rise = place.checked_sub(1).and_then(|before| steps.get(before)).map(|before| {
                let from = level(before.ordinal, low, high);
                view! { <line class="watermark" x1=percent(step.at) x2=percent(step.at) y1=from.to_string() y2=y.to_string() /> }
            });
            let last = place + 1 == steps.len();
            let written = (step.at - labelled >= ROOM || place == 0 || last).then(|| {
                labelled = step.at;
                let end = step.at > 0.95;
                view! {
                    <text class="watermark-name" x=percent(step.at) dx=if end { "-4" } else { "4" } y=(y - 6.0).to_string() text-anchor=if end { "end" } else { "start" }>
                        {step.ordinal.to_string()}
                    </text>
                }
            });
            view! {
                {rise}
                <line class="watermark" x1=percent(step.at) x2=percent(until) y1=y.to_string() y2=y.to_string() />
                {written}
            }
        })
        .collect_view()
        .into_any()
}

fn placed(mark: &Placed, bottom: f64) -> AnyView {
    let Some(shape) = MarkShape::of(&mark.mark.kind) else {
        return ().into_any();
    };
    let title = format!(
        "{}, {}, generation {}{}",
        shape.word,
        figures::exact(mark.mark.at),
        mark.mark.generation,
        mark.mark
            .detail
            .as_ref()
            .map(|detail| format!(": {detail}"))
            .unwrap_or_default(),
    );
    view! {
        <g class=format!("mark {}", shape.class)>
            <title>{title}</title>
            <line class="mark-line" x1=percent(mark.at) x2=percent(mark.at) y1=(WATERMARK + 6.0).to_string() y2=bottom.to_string() />
            <svg x=percent(mark.at) y=(WATERMARK + 5.0).to_string() width="12" height="12" overflow="visible">
                <path d=shape.path fill-rule="evenodd" transform="translate(-6 0)" />
            </svg>
        </g>
    }
    .into_any()
}

#[component]
fn ReadBar(
    bar: Bar,
    top: f64,
    chosen: RwSignal<Option<String>>,
    picture: Memo<Picture>,
) -> impl IntoView {
    /// Narrower than this has no room for its ordinal.
    const ROOM: f64 = 0.03;
    let outcome = Outcome::of(bar.read.outcome.as_deref());
    #[allow(clippy::cast_precision_loss, reason = "at most eight lanes")]
    let y = top + bar.lane as f64 * LANE;
    let id = bar.read.request_id.clone();
    let is_chosen = {
        let id = id.clone();
        move || chosen.with(|chosen| chosen.as_ref() == Some(&id))
    };
    // A thread from the answer up to the step that it caused, and none from an answer that caused none.
    let ordinal = bar.read.ordinal;
    let end = bar.end;
    let thread = move || {
        picture.with(|picture| {
            let low = picture
                .steps
                .iter()
                .map(|step| step.ordinal)
                .min()
                .unwrap_or_default();
            let high = picture
                .steps
                .iter()
                .map(|step| step.ordinal)
                .max()
                .unwrap_or_default();
            picture
                .steps
                .iter()
                .skip(1)
                .find(|step| step.ordinal == ordinal)
                .map(|step| level(step.ordinal, low, high))
        })
    };
    let width = bar.end - bar.start;
    view! {
        <g class=format!("read {}", outcome.class) class:chosen=is_chosen on:pointerenter=move |_| chosen.set(Some(id.clone()))>
            <title>{in_words(&bar.read)}</title>
            {move || thread().map(|from| view! { <line class="thread" x1=percent(end) x2=percent(end) y1=from.to_string() y2=y.to_string() /> })}
            <rect class="hit" x=percent((bar.start - 0.004).max(0.0)) y=(y - 3.0).to_string() width=percent(width + 0.008) height=LANE.to_string() />
            <rect class="bar" x=percent(bar.start) y=y.to_string() width=percent(width) height=BAR.to_string() rx="2" />
            {(width > ROOM).then(|| view! { <text class="bar-name" x=percent(bar.start) dx="5" y=(y + 11.0).to_string()>{ordinal.to_string()}</text> })}
            <svg x=percent(bar.end) y=(y + 1.0).to_string() width="12" height="12" overflow="visible">
                <path class="end" d=outcome.path fill-rule="evenodd" transform="translate(-6 0)" />
            </svg>
        </g>
    }
}

/// A read as a sentence: for titles, for the line below the picture, for screen readers.
fn in_words(read: &Receipt) -> String {
    let outcome = Outcome::of(read.outcome.as_deref());
    let reason = read
        .reason
        .as_ref()
        .map(|reason| format!(" ({})", figures::words(reason)))
        .unwrap_or_default();
    let took = read
        .finished_at
        .map(|finished| {
            format!(
                ", answered after {}",
                figures::duration(figures::seconds_between(read.issued_at, finished))
            )
        })
        .unwrap_or_default();
    format!(
        "Read {}, generation {}, {}: issued {}{took}: {}{reason}",
        read.ordinal,
        read.generation,
        figures::camel_words(&read.trigger),
        read.issued_at.format("%H:%M:%S%.3f"),
        outcome.word,
    )
}

fn summary(timeline: &Timeline) -> String {
    let counted = OUTCOMES
        .iter()
        .filter_map(|outcome| {
            let count = timeline
                .reads
                .iter()
                .filter(|read| Outcome::of(read.outcome.as_deref()) == *outcome)
                .count();
            (count > 0).then(|| format!("{count} {}", outcome.word))
        })
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "{} reads: {counted}. {} marks. The table below lists them.",
        timeline.reads.len(),
        timeline.marks.len()
    )
}

/// What is under the pointer or the keys, in words; its room is always there.
#[component]
fn Told(picture: Memo<Picture>, chosen: RwSignal<Option<String>>) -> impl IntoView {
    let read = Memo::new(move |_| {
        let chosen = chosen.get()?;
        picture.with(|picture| {
            picture
                .bars
                .iter()
                .find(|bar| bar.read.request_id == chosen)
                .map(|bar| bar.read.clone())
        })
    });
    view! {
        <p class="told" aria-live="polite">
            {move || match read.get() {
                None => view! { <span class="muted">"Point at a read, or step through them with the arrow keys."</span> }.into_any(),
                Some(read) => {
                    let outcome = Outcome::of(read.outcome.as_deref());
                    let detail = read.detail.clone();
                    view! {
                        <Glyph class=outcome.class path=outcome.path />
                        " "
                        <span class="num">{in_words(&read)}</span>
                        {detail.map(|detail| view! { <span class="muted">" – "{detail}</span> })}
                    }
                        .into_any()
                }
            }}
        </p>
    }
}

#[component]
fn Legend() -> impl IntoView {
    view! {
        <ul class="picture-legend" aria-label="Legend">
            <li><svg class="glyph" width="16" height="12" aria-hidden="true"><path class="watermark" d="M0 9h7V3h9" /></svg>"watermark"</li>
            {OUTCOMES
                .map(|outcome| {
                    view! { <li title=outcome.meaning><Glyph class=outcome.class path=outcome.path />{outcome.word}</li> }
                })
                .collect_view()}
            {MARKS.map(|mark| view! { <li><Glyph class=mark.class path=mark.path />{mark.word}</li> }).collect_view()}
        </ul>
    }
}

/// The picture for those who do not see it: marks and reads in one list, newest first.
#[component]
fn AsTable(timeline: Signal<Timeline>) -> impl IntoView {
    /// Rows at most; receipts below page through all reads.
    const MOST: usize = 200;
    let rows = move || {
        timeline.with(|timeline| {
            let reads = timeline.reads.iter().map(|read| {
                (
                    read.finished_at.unwrap_or(read.issued_at),
                    "read",
                    in_words(read),
                    read.generation,
                )
            });
            let marks = timeline.marks.iter().map(|mark| {
                let word = MarkShape::of(&mark.kind).map_or("mark", |shape| shape.word);
                (
                    mark.at,
                    word,
                    mark.detail.clone().unwrap_or_default(),
                    mark.generation,
                )
            });
            let mut rows: Vec<_> = reads.chain(marks).collect();
            rows.sort_by_key(|row| std::cmp::Reverse(row.0));
            rows.truncate(MOST);
            rows
        })
    };
    view! {
        <details class="as-table">
            <summary>"The same as a table"</summary>
            <div class="table-wrap">
                <table class="rows">
                    <thead>
                        <tr><th scope="col">"At"</th><th scope="col">"What"</th><th scope="col" class="num">"Generation"</th><th scope="col">"Said"</th></tr>
                    </thead>
                    <tbody>
                        {move || {
                            rows()
                                .into_iter()
                                .map(|(at, what, said, generation)| {
                                    view! {
                                        <tr>
                                            <td data-label="At" class="num"><time datetime=at.to_rfc3339() title=figures::exact(at)>{at.format("%H:%M:%S%.3f").to_string()}</time></td>
                                            <td data-label="What">{what}</td>
                                            <td data-label="Generation" class="num">{generation.to_string()}</td>
                                            <td data-label="Said" class="break">{said}</td>
                                        </tr>
                                    }
                                })
                                .collect_view()
                        }}
                    </tbody>
                </table>
            </div>
        </details>
    }
}

//! What is wrong now, in groups; or one calm line.

use fencepost_views::{Attention, Overview};
use leptos::prelude::*;

use crate::Base;
use crate::figures;
use crate::parts::{Tone, ToneShape, When};

#[component]
pub fn Attentions(overview: Signal<Overview>) -> impl IntoView {
    let groups = Memo::new(move |_| overview.read().attention.clone());
    let calm = Memo::new(move |_| overview.read().calm_since);
    view! {
        <section aria-labelledby="attention">
            <h2 id="attention" class="section">"Needs attention"</h2>
            <div aria-live="polite">
                {move || {
                    if groups.with(Vec::is_empty) {
                        view! {
                            <p class="calm">
                                <span class="badge good"><ToneShape tone=Tone::Good /> "all quiet"</span>
                                " Nothing needs you"
                                {move || calm.get().map(|since| view! { " since " <Since at=since /> })}
                                "."
                            </p>
                        }
                            .into_any()
                    } else {
                        view! {
                            <ul class="attention">
                                {move || groups.get().into_iter().map(|group| view! { <Group group=group /> }).collect_view()}
                            </ul>
                        }
                            .into_any()
                    }
                }}
            </div>
        </section>
    }
}

/// A moment inside a sentence: the date and minute, exact on hover.
#[component]
fn Since(at: chrono::DateTime<chrono::Utc>) -> impl IntoView {
    view! {
        <time datetime=at.to_rfc3339() title=figures::exact(at)>{at.format("%-d %b, %H:%M").to_string()}</time>
    }
}

#[component]
fn Group(group: Attention) -> impl IntoView {
    let tone = match group.kind.as_str() {
        "ledger_unwritable" | "servers_away" | "fence_violations" | "revocations_pending" => {
            Tone::Bad
        }
        _ => Tone::Warn,
    };
    let base = Base::here();
    // A link out of data stays within the dashboard: the base goes before its path.
    let href = base.to(&format!("/{}", group.link.trim_start_matches('/')));
    let shown = group.examples.len();
    let rest = group.count - i64::try_from(shown).unwrap_or(i64::MAX);
    view! {
        <li class=format!("attention-row {}", tone.class())>
            <a href=href>
                <span class="attention-count num">{figures::count(group.count)}</span>
                <span class="attention-what">
                    <span class="attention-title"><ToneShape tone=tone /> {group.title}</span>
                    <span class="attention-examples">
                        {group
                            .examples
                            .into_iter()
                            .map(|example| view! { <code title=example.clone()>{figures::middle(&example, 44)}</code> })
                            .collect_view()}
                        {(rest > 0).then(|| view! { <span class="muted num">{format!("and {} more", figures::count(rest))}</span> })}
                    </span>
                </span>
                <span class="attention-since muted"><When at=group.since /></span>
            </a>
        </li>
    }
}

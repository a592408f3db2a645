//! A row per server on the overview: is it there, by which era, and how its resources are.

use fencepost_views::{Overview, ServerRow, StateCount};
use leptos::prelude::*;

use crate::parts::{Badge, Tone, state_tone};
use crate::{Base, data, figures};

#[component]
pub fn ServerRows(overview: Signal<Overview>) -> impl IntoView {
    let rows = Memo::new(move |_| overview.read().servers.clone());
    let base = Base::here();
    let all = base.to("/servers");
    view! {
        <section aria-labelledby="server-rows">
            <div class="section-row">
                <h2 id="server-rows" class="section">"Servers"</h2>
                <a href=all>"All about them"</a>
            </div>
            <div class="table-wrap">
                <table class="rows">
                    <thead>
                        <tr>
                            <th scope="col">"Server"</th>
                            <th scope="col">"State"</th>
                            <th scope="col">"Era"</th>
                            <th scope="col" class="num">"Sessions"</th>
                            <th scope="col">"Resources"</th>
                            <th scope="col" class="num">"Stale"</th>
                        </tr>
                    </thead>
                    <tbody>
                        {move || rows.get().into_iter().map(|row| view! { <Row row=row /> }).collect_view()}
                    </tbody>
                </table>
            </div>
        </section>
    }
}

#[component]
fn Row(row: ServerRow) -> impl IntoView {
    let name = format!("{}/{}", row.namespace, row.name);
    let base = Base::here();
    let href = base.to(&format!("/resources?server={}", data::segment(&name)));
    let stale = row.stale;
    let stale_href = base.to(&format!(
        "/resources?server={}&stale=true",
        data::segment(&name)
    ));
    let (tone, word) = if row.ready {
        (Tone::Good, "ready")
    } else {
        (Tone::Bad, "away")
    };
    view! {
        <tr>
            <td data-label="Server"><a href=href><span class="muted">{row.namespace}"/"</span>{row.name}</a></td>
            <td data-label="State">
                <Badge tone=tone word=word.to_owned() />
                {row.reason.map(|reason| view! { " " <span class="muted">{figures::words(&reason)}</span> })}
            </td>
            <td data-label="Era">{row.era.unwrap_or_else(|| "not found yet".to_owned())}</td>
            <td data-label="Sessions" class="num">{figures::count(row.sessions)}</td>
            <td data-label="Resources"><StateCounts counts=row.resources /></td>
            <td data-label="Stale" class="num">
                {if stale > 0 {
                    view! { <a href=stale_href class="warn-text">{figures::count(stale)}</a> }.into_any()
                } else {
                    view! { <span class="muted">"0"</span> }.into_any()
                }}
            </td>
        </tr>
    }
}

/// Counts by state, as words.
#[component]
pub fn StateCounts(counts: Vec<StateCount>) -> impl IntoView {
    if counts.is_empty() {
        return view! { <span class="muted">"none yet"</span> }.into_any();
    }
    view! {
        <span class="counts">
            {counts
                .into_iter()
                .map(|count| {
                    let tone = state_tone(&count.state, false);
                    view! {
                        <span class=format!("badge {}", tone.class())>
                            <crate::parts::ToneShape tone=tone />
                            <span class="num">{figures::count(count.count)}</span>
                            " "
                            {figures::words(&count.state)}
                        </span>
                    }
                })
                .collect_view()}
        </span>
    }
    .into_any()
}

//! Receipts: every issued read and what became of it, newest first.

use fencepost_views::{Page, Receipt};
use leptos::prelude::*;

use super::glyph::{Glyph, Outcome};
use super::place::Place;
use crate::parts::{Copy, Digest, Pager, When};
use crate::{Base, data, figures};

#[component]
pub fn Receipts(page: Signal<Page<Receipt>>, place: Memo<Place>) -> impl IntoView {
    let none = Memo::new(move |_| page.with(|page| page.items.is_empty()));
    let shown = Signal::derive(move || page.with(|page| page.items.len()));
    let next = Signal::derive(move || {
        page.with(|page| page.next.clone()).map(|next| {
            Place {
                receipts_after: Some(next),
                ..place.get()
            }
            .address()
        })
    });
    let first = Signal::derive(move || {
        place.read().receipts_after.is_some().then(|| {
            Place {
                receipts_after: None,
                ..place.get()
            }
            .address()
        })
    });
    let base = Base::here();
    let json = Signal::derive(move || {
        base.api(&format!(
            "resources/{}/receipts",
            data::segment(&place.read().id)
        ))
    });
    view! {
        <section aria-labelledby="receipts">
            <h2 id="receipts" class="section">"Receipts"</h2>
            <Show
                when=move || !none.get()
                fallback=|| view! { <p class="muted quiet-line">"No read has been issued yet. Each one leaves a receipt here, whatever becomes of it."</p> }
            >
                <div class="table-wrap">
                    <table class="rows">
                        <thead>
                            <tr>
                                <th scope="col" class="num">"Ordinal"</th>
                                <th scope="col">"Outcome"</th>
                                <th scope="col">"Trigger"</th>
                                <th scope="col">"Issued"</th>
                                <th scope="col" class="num">"Took"</th>
                                <th scope="col" class="num">"Generation"</th>
                                <th scope="col">"Digest"</th>
                                <th scope="col">"Request"</th>
                            </tr>
                        </thead>
                        <tbody>
                            <For each=move || page.get().items key=|receipt| format!("{receipt:?}") let:receipt>
                                <Line receipt=receipt />
                            </For>
                        </tbody>
                    </table>
                </div>
                <Pager shown=shown first=first next=next json=json noun="receipts" />
            </Show>
        </section>
    }
}

#[component]
fn Line(receipt: Receipt) -> impl IntoView {
    let outcome = Outcome::of(receipt.outcome.as_deref());
    let took = receipt.finished_at.map_or_else(
        || "–".to_owned(),
        |finished| figures::duration(figures::seconds_between(receipt.issued_at, finished)),
    );
    let request = receipt.request_id.clone();
    view! {
        <tr id=format!("read-{}", receipt.ordinal)>
            <td data-label="Ordinal" class="num strong">{receipt.ordinal.to_string()}</td>
            <td data-label="Outcome">
                <span class=format!("outcome {}", outcome.class)><Glyph class=outcome.class path=outcome.path /> {outcome.word}</span>
                {receipt.reason.map(|reason| view! { " " <code class="small reason">{reason}</code> })}
                {receipt.detail.map(|detail| view! { <span class="muted small detail break">{detail}</span> })}
            </td>
            <td data-label="Trigger">{figures::camel_words(&receipt.trigger)}</td>
            <td data-label="Issued" class="when"><When at=receipt.issued_at /></td>
            <td data-label="Took" class="num">{took}</td>
            <td data-label="Generation" class="num">{receipt.generation.to_string()}</td>
            <td data-label="Digest">
                {match receipt.digest {
                    Some(digest) => view! { <Digest digest=Some(digest) /> }.into_any(),
                    None => view! { <span class="muted">"–"</span> }.into_any(),
                }}
            </td>
            <td data-label="Request"><span class="digest"><code title=receipt.request_id.clone()>{figures::middle(&receipt.request_id, 13)}</code><Copy text=request what="the request id" /></span></td>
        </tr>
    }
}

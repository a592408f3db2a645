//! Keyset pages: forward by cursor, back by the browser, to the first page by a link.

use leptos::prelude::*;

/// Links around a page. `first` and `next` are whole addresses.
#[component]
pub fn Pager(
    #[prop(into)] shown: Signal<usize>,
    /// Address without a cursor; shown when this is not the first page.
    #[prop(optional, into)]
    first: Signal<Option<String>>,
    #[prop(optional, into)] next: Signal<Option<String>>,
    /// The same rows as JSON.
    #[prop(into)]
    json: Signal<String>,
    #[prop(into)] noun: String,
) -> impl IntoView {
    let label = format!("Pages of {noun}");
    let words = move || {
        let count = shown.get();
        let noun = if count == 1 {
            noun.trim_end_matches('s')
        } else {
            noun.as_str()
        };
        format!("{count} {noun} on this page")
    };
    view! {
        <nav class="pager" aria-label=label>
            <span class="muted num">{words}</span>
            <span class="pager-links">
                {move || first.get().map(|href| view! { <a href=href data-noscroll="true">"First page"</a> })}
                {move || next.get().map(|href| view! { <a href=href rel="next" data-noscroll="true">"Next page →"</a> })}
                <a href=json rel="external" class="json">"JSON"</a>
            </span>
        </nav>
    }
}

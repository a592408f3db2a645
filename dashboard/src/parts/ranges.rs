//! The window selector: links, so that the address bar holds it and it works without wasm.

use leptos::prelude::*;

use crate::range::Range;

/// One link a window; `address` writes the address for a window's word.
#[component]
pub fn Ranges<F>(
    among: &'static [Range],
    #[prop(into)] chosen: Signal<Range>,
    address: F,
) -> impl IntoView
where
    F: Fn(&str) -> String + Clone + Send + Sync + 'static,
{
    view! {
        <nav class="segments" aria-label="Window of time">
            {among
                .iter()
                .map(|range| {
                    let address = address.clone();
                    let range = *range;
                    view! {
                        <a
                            href=move || address(range.word)
                            data-noscroll="true"
                            aria-current=move || (chosen.get() == range).then_some("true")
                        >
                            {range.word}
                        </a>
                    }
                })
                .collect_view()}
        </nav>
    }
}

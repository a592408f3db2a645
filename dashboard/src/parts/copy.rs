//! Long names: shortened in the middle, whole on hover, copied with a click.

use leptos::prelude::*;

use crate::figures;

/// A button that copies `text`; shown only once the page is hydrated, its room kept before.
#[component]
pub fn Copy(#[prop(into)] text: Signal<String>, #[prop(into)] what: String) -> impl IntoView {
    let copied = RwSignal::new(false);
    let name = what.clone();
    let copy = move |_| {
        #[cfg(feature = "hydrate")]
        {
            let _ = window()
                .navigator()
                .clipboard()
                .write_text(&text.get_untracked());
            copied.set(true);
            set_timeout(
                move || {
                    copied.try_set(false);
                },
                std::time::Duration::from_millis(1_600),
            );
        }
        #[cfg(not(feature = "hydrate"))]
        let _ = text;
    };
    view! {
        <button
            type="button"
            class="copy"
            class:done=copied
            aria-label=move || if copied.get() { "Copied".to_owned() } else { format!("Copy {name}") }
            title=format!("Copy {what}")
            on:click=copy
        >
            <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
                <path class="sheets" d="M5.500 5.500v-3h8v8h-3M2.500 5.500h8v8h-8z" />
                <path class="tick" d="M3 8.500l3.200 3.200L13 4.800" />
            </svg>
        </button>
    }
}

/// A digest one can compare by eye, whole on hover, with its copy button.
#[component]
pub fn Digest(#[prop(into)] digest: Signal<Option<String>>) -> impl IntoView {
    let whole = Signal::derive(move || digest.get().unwrap_or_default());
    view! {
        <span class="digest">
            <code title=whole>
                {move || digest.get().map_or_else(|| "none".to_owned(), |digest| figures::digest(&digest))}
            </code>
            <Show when=move || digest.with(Option::is_some)>
                <Copy text=whole what="the whole digest" />
            </Show>
        </span>
    }
}

//! Nothing here yet, and what would fill it.

use leptos::prelude::*;

use super::Copy;

/// An empty state: a title, then the command or manifest that would change it.
#[component]
pub fn Empty(#[prop(into)] title: String, children: Children) -> impl IntoView {
    view! {
        <section class="empty">
            <h2>{title}</h2>
            {children()}
        </section>
    }
}

/// A command line or manifest to be copied.
#[component]
pub fn Command(#[prop(into)] text: Signal<String>, #[prop(into)] what: String) -> impl IntoView {
    view! {
        <div class="command">
            <pre tabindex="0" role="region" aria-label=what.clone()><code>{text}</code></pre>
            <Copy text=text what=what />
        </div>
    }
}

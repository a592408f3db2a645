//! A problem document on the page: what happened and what to do.

use fencepost_views::Problem;
use leptos::prelude::*;

/// `kept`: older data stays visible below.
#[component]
pub fn Trouble(problem: Problem, kept: bool) -> impl IntoView {
    #[cfg(feature = "ssr")]
    if let Some(status) = use_context::<crate::shell::Status>() {
        status.set(problem.status);
    }
    let named = problem.object.clone().or(problem.field.clone());
    view! {
        <section class="trouble" role="alert">
            <h2>{problem.title}</h2>
            <p>{problem.detail}</p>
            {named.map(|named| view! { <p class="muted">"Concerns " <code>{named}</code></p> })}
            {kept.then(|| view! { <p class="muted">"What follows is the last good answer."</p> })}
        </section>
    }
}

//! Whether what is shown is live, and if not, how old it is.

use leptos::prelude::*;

use crate::live::{Live, State};

#[component]
pub fn Indicator() -> impl IntoView {
    let state = Live::state();
    let class = move || match state.get() {
        State::Served => "live served",
        State::Live => "live on",
        State::Reconnecting => "live trying",
        State::Polling => "live polling",
        State::Stale(_) => "live old",
    };
    let word = move || match state.get() {
        State::Served => "as served".to_owned(),
        State::Live => "live".to_owned(),
        State::Reconnecting => "reconnecting".to_owned(),
        State::Polling => "every 10 s".to_owned(),
        State::Stale(since) => format!("stale since {}", since.format("%H:%M")),
    };
    let title = move || match state.get() {
        State::Served => "The page as the server made it. Reload to see what is new.".to_owned(),
        State::Live => "Changes are shown within about a second.".to_owned(),
        State::Reconnecting => {
            "The stream of changes is away; the browser is trying again.".to_owned()
        }
        State::Polling => "No stream of changes: the page asks every ten seconds.".to_owned(),
        State::Stale(since) => format!(
            "The server does not answer. This is what it said until {}.",
            crate::figures::exact(since)
        ),
    };
    view! {
        <span class=class role="status" title=title>
            <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
                <circle class="ring" cx="5" cy="5" r="3.600" />
                <circle class="dot" cx="5" cy="5" r="2.200" />
            </svg>
            <span class="live-word">{word}</span>
        </span>
    }
}

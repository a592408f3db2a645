//! A state in words, with a shape and a colour that say it again.

use leptos::prelude::*;

use crate::figures;

/// What a state means to the reader. Colour, shape and word all carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Busy,
    Warn,
    Bad,
    Quiet,
}

impl Tone {
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Quiet => "quiet",
        }
    }
}

/// The tone of a resource's state word.
pub fn state_tone(state: &str, is_stale: bool) -> Tone {
    match state {
        "ACTIVE" if is_stale => Tone::Warn,
        "ACTIVE" => Tone::Good,
        "DISCOVERED" | "SUBSCRIBING" | "UNSUBSCRIBING" => Tone::Busy,
        "TOMBSTONE_PENDING" | "UNSUBSCRIBE_UNKNOWN" => Tone::Warn,
        "REVOKED" | "RECONCILIATION_REQUIRED" => Tone::Bad,
        _ => Tone::Quiet,
    }
}

/// The shape before the word: disc, ring, triangle, square, dash.
#[component]
pub fn Shape(tone: Tone) -> impl IntoView {
    let path = match tone {
        Tone::Good => "M5 1.2a3.800 3.800 0 1 0 0 7.600a3.800 3.800 0 1 0 0-7.600z",
        Tone::Busy => "M5 1a4 4 0 1 0 0 8a4 4 0 1 0 0-8zM5 3a2 2 0 1 1 0 4a2 2 0 1 1 0-4z",
        Tone::Warn => "M5 .8L9.600 9H.4z",
        Tone::Bad => "M1.200 1.200h7.600v7.600H1.200z",
        Tone::Quiet => "M1.200 4h7.600v2H1.200z",
    };
    view! {
        <svg class="shape" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
            <path d=path fill-rule="evenodd" />
        </svg>
    }
}

/// A word with its tone.
#[component]
pub fn Badge(
    #[prop(into)] tone: Signal<Tone>,
    #[prop(into)] word: Signal<String>,
) -> impl IntoView {
    view! {
        <span class=move || format!("badge {}", tone.get().class())>
            {move || view! { <Shape tone=tone.get() /> }}
            {move || figures::words(&word.get())}
        </span>
    }
}

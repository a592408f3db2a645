//! Moments: absolute until hydration, then relative; the exact UTC time on hover, always.

use chrono::{DateTime, Utc};
use leptos::prelude::*;

use crate::clock::Clock;
use crate::figures;

/// A moment in the past.
#[component]
pub fn When(#[prop(into)] at: Signal<DateTime<Utc>>) -> impl IntoView {
    let now = Clock::signal();
    let text = move || {
        let at = at.get();
        match now.get() {
            None => figures::moment(at),
            Some(now) => {
                let age = figures::seconds_between(at, now);
                if age < 1.0 {
                    "just now".to_owned()
                } else {
                    format!("{} ago", figures::short_duration(age))
                }
            }
        }
    };
    view! {
        <time datetime=move || at.get().to_rfc3339() title=move || figures::exact(at.get())>
            {text}
        </time>
    }
}

/// A moment to come, counted down.
#[component]
pub fn Until(#[prop(into)] at: Signal<DateTime<Utc>>) -> impl IntoView {
    let now = Clock::signal();
    let text = move || {
        let at = at.get();
        match now.get() {
            None => figures::moment(at),
            Some(now) => {
                let left = figures::seconds_between(now, at);
                if left > 0.0 {
                    format!("in {}", figures::duration(left.ceil()))
                } else {
                    format!("{} ago", figures::short_duration(left))
                }
            }
        }
    };
    view! {
        <time datetime=move || at.get().to_rfc3339() title=move || figures::exact(at.get())>
            {text}
        </time>
    }
}

//! The page's clock: absent on the server and until hydration, then once a second while visible.
//!
//! Absent means "write the absolute time", so server and browser render the same first page.

use chrono::{DateTime, Utc};
use leptos::prelude::*;

/// Now, once the browser has taken over.
#[derive(Clone, Copy)]
pub struct Clock(RwSignal<Option<DateTime<Utc>>>);

impl Clock {
    pub fn provide() {
        let clock = Self(RwSignal::new(None));
        provide_context(clock);
        #[cfg(feature = "hydrate")]
        Effect::new(move |_| clock.start());
    }

    /// Now, for closures that outlive the context.
    pub fn signal() -> Signal<Option<DateTime<Utc>>> {
        use_context::<Self>().map_or_else(|| Signal::stored(None), |clock| clock.0.into())
    }

    /// The server's time, as far as its page tells: a laptop's clock may be minutes off, and "stale" is
    /// the server's word.
    #[cfg(feature = "hydrate")]
    fn start(self) {
        const WORTH_CORRECTING_MS: f64 = 2_000.0;
        let loaded = window()
            .performance()
            .map_or(0.0, |performance| performance.now());
        let served = document()
            .document_element()
            .and_then(|html| html.get_attribute("data-now"))
            .and_then(|now| now.parse::<f64>().ok());
        let offset = served
            .map(|served| served - (js_sys::Date::now() - loaded))
            .filter(|offset| offset.abs() > WORTH_CORRECTING_MS)
            .unwrap_or_default();
        let tick = move || {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "milliseconds since 1970 fit an i64"
            )]
            self.0.set(DateTime::from_timestamp_millis(
                (js_sys::Date::now() + offset) as i64,
            ));
        };
        tick();
        let visible = move || {
            if !document().hidden() {
                tick();
            }
        };
        if let Ok(handle) = set_interval_with_handle(visible, std::time::Duration::from_secs(1)) {
            on_cleanup(move || handle.clear());
        }
    }
}

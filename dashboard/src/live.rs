//! Live: one `EventSource` a tab, "look again" signals, and what the reader is told about it.
//!
//! A signal carries no data: a page that it concerns asks its question again, at most once a second.
//! A hidden tab closes its stream; waking up it waits a random moment before it asks, so that a
//! hundred tabs opened by one laptop lid do not ask at once. Without a stream the page polls.

use chrono::{DateTime, Utc};
use fencepost_views::LiveEvent;
use leptos::prelude::*;

/// What the indicator says. The server only ever says the first.
#[cfg_attr(
    not(feature = "hydrate"),
    allow(dead_code, reason = "the browser's states")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Before hydration: the page is what it was when it was served.
    #[default]
    Served,
    Live,
    Reconnecting,
    /// No stream, asking every ten seconds.
    Polling,
    /// The last question failed: what is shown is as old as this.
    Stale(DateTime<Utc>),
}

/// The tab's connection; by context.
#[derive(Clone, Copy)]
pub struct Live {
    state: RwSignal<State>,
    #[cfg(feature = "hydrate")]
    stream: stream::Stream,
}

impl Live {
    /// Opens it once for the whole page.
    pub fn provide() {
        let state = RwSignal::new(State::Served);
        let live = Self {
            state,
            #[cfg(feature = "hydrate")]
            stream: stream::Stream::new(state),
        };
        provide_context(live);
        #[cfg(feature = "hydrate")]
        Effect::new(move |_| live.stream.start());
    }

    pub fn state() -> Signal<State> {
        use_context::<Self>()
            .map_or_else(|| Signal::stored(State::Served), |live| live.state.into())
    }

    /// A number that rises when something that `concerns` the page has moved: put it into a resource's source.
    pub fn refresh_on(
        concerns: impl Fn(&LiveEvent) -> bool + Send + Sync + 'static,
    ) -> ReadSignal<u32> {
        let (tick, set_tick) = signal(0_u32);
        #[cfg(feature = "hydrate")]
        if let Some(live) = use_context::<Self>() {
            live.stream.subscribe(concerns, set_tick);
        }
        #[cfg(not(feature = "hydrate"))]
        drop((concerns, set_tick));
        tick
    }

    /// Tells whether the last question was answered.
    pub fn answered(answered: bool) {
        #[cfg(feature = "hydrate")]
        if let Some(live) = use_context::<Self>() {
            live.stream.answered(answered);
        }
        #[cfg(not(feature = "hydrate"))]
        let _ = answered;
    }
}

#[cfg(feature = "hydrate")]
mod stream {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use chrono::DateTime;
    use fencepost_views::{LiveEvent, LiveKind};
    use leptos::prelude::*;
    use wasm_bindgen::JsCast as _;
    use wasm_bindgen::closure::Closure;
    use web_sys::{EventSource, MessageEvent};

    use super::State;

    /// A page asks again at most this often, however much moves.
    const COALESCE_MS: f64 = 1_000.0;
    /// How often it asks without a stream.
    const POLL: Duration = Duration::from_secs(10);
    /// How long a hidden tab keeps its stream: a glance at another tab costs nothing.
    const HIDDEN: Duration = Duration::from_secs(30);
    /// Tabs that wake together spread over this.
    const WAKE_SPREAD_MS: f64 = 2_000.0;
    /// How long a stream may take to come back before the page polls.
    const PATIENCE: Duration = Duration::from_secs(6);
    /// The names the server sends.
    const NAMES: [&str; 5] = ["resource", "server", "index", "sample", "resync"];

    type Concerns = Arc<dyn Fn(&LiveEvent) -> bool + Send + Sync>;

    struct Subscriber {
        concerns: Concerns,
        tick: WriteSignal<u32>,
        asked_at: f64,
        owed: bool,
    }

    #[derive(Default)]
    struct Inner {
        source: Option<EventSource>,
        subscribers: BTreeMap<u64, Subscriber>,
        next: u64,
        hide: Option<TimeoutHandle>,
        failing: bool,
        answered_at: f64,
    }

    /// Handle of the one stream. Everything here happens on the browser's one thread.
    #[derive(Clone, Copy)]
    pub struct Stream {
        state: RwSignal<State>,
        inner: StoredValue<Inner, LocalStorage>,
    }

    impl Stream {
        pub fn new(state: RwSignal<State>) -> Self {
            Self {
                state,
                inner: StoredValue::new_local(Inner::default()),
            }
        }

        pub fn start(self) {
            self.inner
                .update_value(|inner| inner.answered_at = js_sys::Date::now());
            self.open();
            let hidden =
                window_event_listener_untyped("visibilitychange", move |_| self.visibility());
            on_cleanup(move || hidden.remove());
            let poll = set_interval_with_handle(
                move || {
                    if !document().hidden() && self.state.get_untracked() != State::Live {
                        self.look_again();
                        self.reopen_if_closed();
                    }
                },
                POLL,
            );
            on_cleanup(move || poll.map(|poll| poll.clear()).unwrap_or_default());
        }

        pub fn subscribe(
            self,
            concerns: impl Fn(&LiveEvent) -> bool + Send + Sync + 'static,
            tick: WriteSignal<u32>,
        ) {
            let id = self.inner.try_update_value(|inner| {
                inner.next += 1;
                let subscriber = Subscriber {
                    concerns: Arc::new(concerns),
                    tick,
                    asked_at: js_sys::Date::now(),
                    owed: false,
                };
                inner.subscribers.insert(inner.next, subscriber);
                inner.next
            });
            on_cleanup(move || {
                let _ = self
                    .inner
                    .try_update_value(|inner| id.map(|id| inner.subscribers.remove(&id)));
            });
        }

        pub fn answered(self, answered: bool) {
            let since = self.inner.try_update_value(|inner| {
                inner.failing = !answered;
                if answered {
                    inner.answered_at = js_sys::Date::now();
                }
                inner.answered_at
            });
            if answered {
                if matches!(self.state.get_untracked(), State::Stale(_)) {
                    self.state.set(if self.is_open() {
                        State::Live
                    } else {
                        State::Polling
                    });
                }
            } else {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "milliseconds since 1970 fit an i64"
                )]
                let since = since.and_then(|since| DateTime::from_timestamp_millis(since as i64));
                self.state
                    .set(since.map_or(State::Reconnecting, State::Stale));
            }
        }

        fn is_open(self) -> bool {
            self.inner.with_value(|inner| {
                inner
                    .source
                    .as_ref()
                    .is_some_and(|source| source.ready_state() == EventSource::OPEN)
            })
        }

        fn open(self) {
            let Ok(source) = EventSource::new(&crate::Base::of_document().api("events")) else {
                self.state.set(State::Polling);
                return;
            };
            let opened = Closure::<dyn Fn()>::new(move || {
                let was = self.state.get_untracked();
                self.state.set(State::Live);
                // Whatever moved between the page's making and this stream is asked for once.
                if was != State::Live {
                    self.look_again();
                }
            });
            let failed = Closure::<dyn Fn()>::new(move || {
                // Until now whatever moved was told, so what is shown was true until now.
                if self.state.get_untracked() == State::Live {
                    self.inner
                        .update_value(|inner| inner.answered_at = js_sys::Date::now());
                }
                if !matches!(self.state.get_untracked(), State::Stale(_) | State::Polling) {
                    self.state.set(State::Reconnecting);
                    set_timeout(
                        move || {
                            if self.state.get_untracked() == State::Reconnecting {
                                self.state.set(State::Polling);
                                self.look_again();
                            }
                        },
                        PATIENCE,
                    );
                }
            });
            let message = Closure::<dyn Fn(MessageEvent)>::new(move |message: MessageEvent| {
                let event = message
                    .data()
                    .as_string()
                    .and_then(|text| serde_json::from_str::<LiveEvent>(&text).ok());
                if let Some(event) = event {
                    self.spread(&event);
                }
            });
            source.set_onopen(Some(opened.as_ref().unchecked_ref()));
            source.set_onerror(Some(failed.as_ref().unchecked_ref()));
            for name in NAMES {
                let _ =
                    source.add_event_listener_with_callback(name, message.as_ref().unchecked_ref());
            }
            // Handed to the browser's collector: they live as long as this source does.
            let _ = opened.into_js_value();
            let _ = failed.into_js_value();
            let _ = message.into_js_value();
            self.inner.update_value(|inner| {
                if let Some(old) = inner.source.replace(source) {
                    old.close();
                }
            });
        }

        /// The browser reconnects by itself unless the server refused; then it is up to us.
        fn reopen_if_closed(self) {
            let closed = self.inner.with_value(|inner| {
                inner
                    .source
                    .as_ref()
                    .is_none_or(|source| source.ready_state() == EventSource::CLOSED)
            });
            if closed {
                self.open();
            }
        }

        fn visibility(self) {
            let pending = self
                .inner
                .try_update_value(|inner| inner.hide.take())
                .flatten();
            if let Some(pending) = pending {
                pending.clear();
            }
            if document().hidden() {
                let hide = set_timeout_with_handle(
                    move || {
                        self.inner.update_value(|inner| {
                            if let Some(source) = inner.source.take() {
                                source.close();
                            }
                        });
                        self.state.set(State::Reconnecting);
                    },
                    HIDDEN,
                );
                self.inner.update_value(|inner| inner.hide = hide.ok());
            } else if self.inner.with_value(|inner| inner.source.is_none()) {
                let delay =
                    Duration::from_secs_f64(js_sys::Math::random() * WAKE_SPREAD_MS / 1_000.0);
                set_timeout(move || self.reopen_if_closed(), delay);
            }
        }

        fn look_again(self) {
            self.spread(&LiveEvent {
                kind: LiveKind::Resync,
                id: None,
            });
        }

        fn spread(self, event: &LiveEvent) {
            let concerned: Vec<u64> = self.inner.with_value(|inner| {
                let concerned = |subscriber: &Subscriber| {
                    event.kind == LiveKind::Resync || (subscriber.concerns)(event)
                };
                inner
                    .subscribers
                    .iter()
                    .filter(|(_, subscriber)| concerned(subscriber))
                    .map(|(id, _)| *id)
                    .collect()
            });
            for id in concerned {
                self.owe(id);
            }
        }

        /// Asks now, or owes one question for when the second is over.
        fn owe(self, id: u64) {
            let now = js_sys::Date::now();
            let wait = self.inner.try_update_value(|inner| {
                let subscriber = inner.subscribers.get_mut(&id)?;
                if subscriber.owed {
                    return None;
                }
                subscriber.owed = true;
                Some((subscriber.asked_at + COALESCE_MS - now).clamp(0.0, COALESCE_MS))
            });
            if let Some(Some(wait)) = wait {
                set_timeout(
                    move || self.ask(id),
                    Duration::from_secs_f64(wait / 1_000.0),
                );
            }
        }

        fn ask(self, id: u64) {
            let tick = self.inner.try_update_value(|inner| {
                let subscriber = inner.subscribers.get_mut(&id)?;
                subscriber.owed = false;
                subscriber.asked_at = js_sys::Date::now();
                Some(subscriber.tick)
            });
            if let Some(Some(tick)) = tick {
                tick.update(|tick| *tick = tick.wrapping_add(1));
            }
        }
    }
}

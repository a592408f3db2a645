//! The theme switch: a form to the server, which sets the cookie; taken over in the browser.

use leptos::prelude::*;

use crate::{Base, Theme};

#[component]
pub fn ThemeSwitch() -> impl IntoView {
    let base = Base::here();
    let chosen = RwSignal::new(start());
    let choose = move |theme: Theme| {
        let base = Base::here();
        move |event: leptos::ev::MouseEvent| {
            event.prevent_default();
            chosen.set(theme);
            apply(theme, &base);
        }
    };
    let button = move |theme: Theme, name: &'static str, icon: &'static str| {
        view! {
            <button
                type="submit"
                name="to"
                value=theme.word()
                title=name
                aria-label=name
                aria-pressed=move || if chosen.get() == theme { "true" } else { "false" }
                on:click=choose(theme)
            >
                <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d=icon /></svg>
            </button>
        }
    };
    view! {
        <form class="themes" method="get" action=base.to("/theme") role="group" aria-label="Theme">
            {button(Theme::System, "Theme of the system", "M2 3h12v8H2zM6 14h4M8 11v3")}
            {button(Theme::Light, "Light theme", "M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6zM8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.400 1.400M11.600 11.600L13 13M3 13l1.400-1.400M11.600 4.400L13 3")}
            {button(Theme::Dark, "Dark theme", "M13.500 10A6 6 0 1 1 6 2.500A5 5 0 0 0 13.500 10z")}
        </form>
    }
}

/// What the page was served with, on both sides.
fn start() -> Theme {
    #[cfg(feature = "hydrate")]
    {
        let written = document()
            .document_element()
            .and_then(|html| html.get_attribute("data-theme"));
        Theme::parse(&written.unwrap_or_default())
    }
    #[cfg(not(feature = "hydrate"))]
    {
        use_context::<Theme>().unwrap_or_default()
    }
}

fn apply(theme: Theme, base: &Base) {
    #[cfg(feature = "hydrate")]
    {
        use wasm_bindgen::JsCast as _;
        if let Some(html) = document().document_element() {
            let _ = html.set_attribute("data-theme", theme.word());
        }
        if let Ok(document) = document().dyn_into::<web_sys::HtmlDocument>() {
            let _ = document.set_cookie(&theme.cookie(base.as_str()));
        }
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (theme, base);
}

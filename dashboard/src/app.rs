//! The frame of every page: head, navigation, the live indicator, the theme switch, and the routes.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{A, Route, Router, Routes};
use leptos_router::{SsrMode, path};

use crate::Base;
use crate::clock::Clock;
use crate::live::Live;
use crate::pages::{IndexesPage, OverviewPage, ResourcePage, ResourcesPage, ServersPage};
use crate::parts::{Empty, Indicator, ThemeSwitch};

/// The dashboard. Context: [`Base`].
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    Clock::provide();
    Live::provide();
    #[cfg(feature = "hydrate")]
    Effect::new(|_| take_over());
    let base = Base::here();
    let prefix = std::borrow::Cow::<'static, str>::Owned(base.as_str().to_owned());
    let home = base.to("/");
    let links = [
        ("/", "Overview"),
        ("/resources", "Resources"),
        ("/servers", "Servers"),
        ("/indexes", "Indexes"),
    ]
    .map(|(path, name)| (base.to(path), path == "/", name));
    view! {
        <Title formatter=|page: String| if page.is_empty() { "Fencepost".to_owned() } else { format!("{page} · Fencepost") } />
        <Router base=prefix>
            <a class="skip" href="#main">"Skip to the page"</a>
            <header class="top">
                <div class="top-in">
                    <a class="brand" href=home aria-label="Fencepost, overview">
                        <Mark />
                        <span>"Fencepost"</span>
                    </a>
                    <nav aria-label="Pages">
                        {links
                            .into_iter()
                            .map(|(href, exact, name)| view! { <A href=href exact=exact>{name}</A> })
                            .collect_view()}
                    </nav>
                    <div class="top-end">
                        <Indicator />
                        <ThemeSwitch />
                    </div>
                </div>
            </header>
            <main id="main" tabindex="-1">
                <Routes fallback=|| view! { <NoSuchPage /> }>
                    <Route path=path!("/") view=OverviewPage ssr=SsrMode::Async />
                    <Route path=path!("/resources") view=ResourcesPage ssr=SsrMode::Async />
                    <Route path=path!("/resources/:id") view=ResourcePage ssr=SsrMode::Async />
                    <Route path=path!("/servers") view=ServersPage ssr=SsrMode::Async />
                    <Route path=path!("/indexes") view=IndexesPage ssr=SsrMode::Async />
                </Routes>
            </main>
            <footer class="foot">
                <span>"All times are UTC."</span>
                <a href=base.to("/api/openapi.json") rel="external">"API"</a>
                <a href=base.to("/metrics") rel="external">"Metrics"</a>
                <a class="account" href=base.to("/login") rel="external">"Log in or out"</a>
                <span class="wide-only">"Press " <kbd>"/"</kbd> " to search resources."</span>
            </footer>
        </Router>
    }
}

/// The mark: three posts and the rail that holds.
#[component]
fn Mark() -> impl IntoView {
    view! {
        <svg class="brand-mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
            <path d="M4 21V7l2-3 2 3v14zM10 21V7l2-3 2 3v14zM16 21V7l2-3 2 3v14z" />
            <path class="rail" d="M2 12h20" />
        </svg>
    }
}

#[component]
fn NoSuchPage() -> impl IntoView {
    #[cfg(feature = "ssr")]
    if let Some(status) = use_context::<crate::shell::Status>() {
        status.set(404);
    }
    let base = Base::here();
    view! {
        <Title text="No such page" />
        <Empty title="There is no such page">
            <p>"The address may be from another version, or cut in a message."</p>
            <p><a href=base.to("/resources")>"Search the resources"</a></p>
        </Empty>
    }
}

/// Marks the document as hydrated (which shows what needs wasm) and lets `/` search from anywhere.
#[cfg(feature = "hydrate")]
fn take_over() {
    use wasm_bindgen::JsCast as _;
    if let Some(html) = document().document_element() {
        let _ = html.set_attribute("data-hydrated", "");
    }
    let base = Base::here();
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        let typing = event
            .target()
            .and_then(|target| target.dyn_into::<web_sys::Element>().ok())
            .is_some_and(|element| {
                matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
            });
        if event.key() != "/" || typing || event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        event.prevent_default();
        match document()
            .get_element_by_id("search")
            .and_then(|input| input.dyn_into::<web_sys::HtmlInputElement>().ok())
        {
            Some(input) => {
                let _ = input.focus();
                input.select();
            }
            None => {
                let _ = window().location().set_href(&base.to("/resources#search"));
            }
        }
    });
    on_cleanup(move || handle.remove());
}

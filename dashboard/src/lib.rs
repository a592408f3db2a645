//! The dashboard: pages in Leptos, rendered by the server with data and hydrated in the browser.
//!
//! In: the shapes of `fencepost-views`, from a [`source::Source`] on the server and from the JSON API in
//! the browser. Out: HTML that is useful before and without wasm. What a server or manifest said
//! is shown as text only, and no address outside the base path is ever asked.
// A component's properties are its own; a page's answer is as large as what is wrong with it.
#![allow(clippy::needless_pass_by_value, clippy::result_large_err)]
#![recursion_limit = "256"]

#[cfg(not(any(feature = "ssr", feature = "hydrate")))]
compile_error!(
    "choose one: `ssr` (the server) or `--no-default-features --features hydrate` (the browser)"
);

pub mod app;
pub mod base;
mod clock;
mod data;
pub mod diff;
mod figures;
mod lanes;
mod live;
mod pages;
mod parts;
mod range;
mod theme;

#[cfg(feature = "ssr")]
pub mod shell;
#[cfg(feature = "ssr")]
pub mod source;

pub use app::App;
pub use base::Base;
pub use theme::Theme;

/// The stylesheet, served by the binary beside the pages.
#[cfg(feature = "ssr")]
pub const STYLESHEET: &str = include_str!("../style/fencepost.css");

/// The mark, served as the favicon and shown in the page's head.
#[cfg(feature = "ssr")]
pub const FAVICON: &str = include_str!("../style/favicon.svg");

/// Takes over the page that the server rendered; called once by the page's module script.
#[cfg(feature = "hydrate")]
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(|| {
        leptos::prelude::provide_context(Base::of_document());
        App()
    });
}

//! The dashboard's pages and what they load, from inside the binary.
//!
//! In: a source of answers. Out: server-rendered pages under a strict Content-Security-Policy, and the
//! stylesheet and wasm bundle under names that carry the digest of their bytes. Nothing is loaded from
//! elsewhere. A build without the bundle serves the same pages without hydration.

mod assets;
mod login;
mod pages;

use std::sync::Arc;

use any_spawner::Executor;
use axum::{Router, extract::Path, http::HeaderMap, routing::get};
use fencepost_dashboard::{Base, shell::ROUTES, source::Source};
use tower_http::compression::CompressionLayer;

pub use login::{LoginPage, Shown};
pub use pages::Narrowing;

use assets::Bundle;
use pages::Pages;

/// Pages at the root, assets below `/assets`.
pub fn router(source: Arc<dyn Source>) -> Router {
    // Leptos spawns the pages' questions on it. Set already is as good: another router did it.
    let _ = Executor::init_tokio();
    let bundle = Arc::new(Bundle::embedded());
    let pages = Pages::new(source, Base::default(), Arc::clone(&bundle));
    let router = ROUTES.into_iter().fold(Router::new(), |router, path| {
        router.route(path, get(pages.clone().handler()))
    });
    router
        .route(
            "/assets/{name}",
            get(
                move |Path(name): Path<String>, headers: HeaderMap| async move {
                    assets::serve(&bundle, &name, &headers)
                },
            ),
        )
        .fallback(pages.handler())
        .layer(CompressionLayer::new())
}

//! Rendering a page: its context, its status, its policy.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
        },
        request::Parts,
    },
    response::Response,
};
use fencepost_dashboard::{
    Base, Theme,
    shell::{Account, Status, shell},
    source::Source,
};
use leptos::{
    nonce::use_nonce,
    prelude::{expect_context, provide_context, use_context},
};
use leptos_axum::ResponseOptions;

use super::assets::Bundle;

/// What the caller of one request may see of the source: set in the request's extensions by who knows the caller.
#[derive(Clone)]
pub struct Narrowing(Arc<Narrow>);

type Narrow = dyn Fn(Arc<dyn Source>) -> Arc<dyn Source> + Send + Sync;

impl Narrowing {
    pub fn new(
        narrowed: impl Fn(Arc<dyn Source>) -> Arc<dyn Source> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(narrowed))
    }
}

/// Renders any page of the dashboard; the router inside decides which.
#[derive(Clone)]
pub struct Pages {
    source: Arc<dyn Source>,
    base: Base,
    bundle: Arc<Bundle>,
}

type Rendering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

impl Pages {
    pub fn new(source: Arc<dyn Source>, base: Base, bundle: Arc<Bundle>) -> Self {
        Self {
            source,
            base,
            bundle,
        }
    }

    pub fn handler(self) -> impl Fn(Request) -> Rendering + Clone + Send + Sync + 'static {
        let Self {
            source,
            base,
            bundle,
        } = self;
        let context = move || {
            let parts = use_context::<Parts>();
            let narrowing = parts
                .as_ref()
                .and_then(|parts| parts.extensions.get::<Narrowing>());
            let source = Arc::clone(&source);
            if narrowing.is_some() {
                provide_context(Account);
            }
            provide_context(match narrowing {
                Some(Narrowing(narrowed)) => narrowed(source),
                None => source,
            });
            provide_context(base.clone());
            let theme = parts.and_then(|parts| {
                Some(Theme::of_cookies(parts.headers.get(COOKIE)?.to_str().ok()?))
            });
            provide_context(theme.unwrap_or_default());
            let options = expect_context::<ResponseOptions>();
            for (name, value) in fixed_headers() {
                options.insert_header(name, value);
            }
            if let Some(policy) = policy() {
                options.insert_header(CONTENT_SECURITY_POLICY, policy);
            }
            provide_context(Status::new(move |status| {
                if let Ok(status) = StatusCode::from_u16(status) {
                    options.set_status(status);
                }
            }));
        };
        let render =
            leptos_axum::render_app_async_with_context(context, move || shell(&bundle.addresses));
        move |request| render(request)
    }
}

pub(super) fn fixed_headers() -> [(HeaderName, HeaderValue); 4] {
    [
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ]
}

/// Scripts only with this page's nonce, wasm allowed, everything else from here or not at all. Style
/// attributes are allowed because the chart crate places its labels with them; style elements are not.
fn policy() -> Option<HeaderValue> {
    let nonce = use_nonce()?;
    HeaderValue::try_from(format!(
        "default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic' 'wasm-unsafe-eval'; style-src 'self'; \
         style-src-attr 'unsafe-inline'; img-src 'self'; connect-src 'self'; font-src 'none'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    ))
    .ok()
}

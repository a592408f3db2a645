//! The document around the pages, as the server sends it.

use leptos::prelude::*;
use leptos_meta::MetaTags;

use crate::{App, Base, Theme};

/// Addresses below the base of what the binary embeds; their names carry the digest of their bytes.
#[derive(Debug, Clone, Default)]
pub struct Assets {
    pub stylesheet: String,
    pub favicon: String,
    /// The module and the wasm it loads; absent in a build without them, and then no page asks for any.
    pub script: Option<(String, String)>,
}

/// The pages' paths below the base, in axum's spelling.
pub const ROUTES: [&str; 5] = ["/", "/resources", "/resources/{id}", "/servers", "/indexes"];

/// Lets a page that ends in a problem document set the response's status.
#[derive(Clone)]
pub struct Status(std::sync::Arc<dyn Fn(u16) + Send + Sync>);

impl Status {
    pub fn new(set: impl Fn(u16) + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(set))
    }

    pub fn set(&self, status: u16) {
        (self.0)(status);
    }
}

/// Somebody logged in to see the page, and may want to log out. The document says so to the stylesheet.
#[derive(Debug, Clone, Copy)]
pub struct Account;

/// The whole document. Context: [`Base`], [`Theme`], `Arc<dyn Source>`, leptos' nonce, and [`Account`] if there is one.
pub fn shell(assets: &Assets) -> impl IntoView + use<> {
    let base = Base::here();
    let theme = use_context::<Theme>().unwrap_or_default();
    let account = use_context::<Account>().map(|_| "");
    let nonce = leptos::nonce::use_nonce();
    let stylesheet = base.to(&assets.stylesheet);
    let favicon = base.to(&assets.favicon);
    let script = assets.script.as_ref().map(|(module, wasm)| {
        let (module, wasm) = (base.to(module), base.to(wasm));
        let text = format!("import start,{{hydrate}} from {module:?};start({{module_or_path:{wasm:?}}}).then(hydrate);");
        view! {
            <link rel="modulepreload" href=module />
            <link rel="preload" href=wasm r#as="fetch" r#type="application/wasm" crossorigin="anonymous" />
            <script type="module" nonce=nonce inner_html=text></script>
        }
    });
    view! {
        <!DOCTYPE html>
        <html
            lang="en"
            data-base=base.as_str().to_owned()
            data-theme=theme.word()
            data-account=account
            data-now=chrono::Utc::now().timestamp_millis().to_string()
        >
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content="light dark" />
                <meta name="robots" content="noindex" />
                <link rel="icon" href=favicon r#type="image/svg+xml" />
                <link rel="stylesheet" href=stylesheet />
                {script}
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

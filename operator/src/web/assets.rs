//! What the pages load: stylesheet, favicon and the wasm bundle, addressed by their digests.

use std::collections::HashMap;

use axum::{
    body::Bytes,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use fencepost_dashboard::{FAVICON, STYLESHEET, shell::Assets};
use rust_embed::RustEmbed;
use sha2::{Digest, Sha256};

/// What `scripts/build-dashboard.sh` made; empty when it has not run.
#[derive(RustEmbed)]
#[folder = "../dashboard/pkg"]
struct Pkg;

/// A name holds the digest of its bytes, so that a year is not too long.
const FOREVER: &str = "public, max-age=31536000, immutable";

struct Asset {
    bytes: Bytes,
    mime_type: &'static str,
    etag: HeaderValue,
}

/// Every asset by its name.
pub struct Bundle {
    pub addresses: Assets,
    assets: HashMap<String, Asset>,
}

impl Bundle {
    pub fn embedded() -> Self {
        let mut bundle = Self {
            addresses: Assets::default(),
            assets: HashMap::new(),
        };
        bundle.addresses.stylesheet = bundle.add(
            "fencepost",
            "css",
            "text/css; charset=utf-8",
            STYLESHEET.into(),
        );
        bundle.addresses.favicon = bundle.add("favicon", "svg", "image/svg+xml", FAVICON.into());
        if let (Some(module), Some(wasm)) =
            (Pkg::get("fencepost.js"), Pkg::get("fencepost_bg.wasm"))
        {
            let module = bundle.add(
                "fencepost",
                "js",
                "text/javascript; charset=utf-8",
                module.data.into_owned().into(),
            );
            let wasm = bundle.add(
                "fencepost",
                "wasm",
                "application/wasm",
                wasm.data.into_owned().into(),
            );
            bundle.addresses.script = Some((module, wasm));
        }
        bundle
    }

    /// Adds an asset; returns its address below the base.
    fn add(
        &mut self,
        stem: &str,
        extension: &str,
        mime_type: &'static str,
        bytes: Bytes,
    ) -> String {
        let digest = Sha256::digest(&bytes);
        let short = URL_SAFE_NO_PAD.encode(&digest[..9]);
        let name = format!("{stem}-{short}.{extension}");
        let etag = HeaderValue::try_from(format!("\"{short}\""))
            .unwrap_or(HeaderValue::from_static("\"-\""));
        self.assets.insert(
            name.clone(),
            Asset {
                bytes,
                mime_type,
                etag,
            },
        );
        format!("/assets/{name}")
    }
}

pub fn serve(bundle: &Bundle, name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = bundle.assets.get(name) else {
        // Another build's name: the page that asks for it is older than this binary.
        return (
            StatusCode::NOT_FOUND,
            "this asset belongs to another version; reload the page",
        )
            .into_response();
    };
    let fixed = [
        (CACHE_CONTROL, HeaderValue::from_static(FOREVER)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (ETAG, asset.etag.clone()),
    ];
    if headers.get(IF_NONE_MATCH) == Some(&asset.etag) {
        return (StatusCode::NOT_MODIFIED, fixed).into_response();
    }
    (
        fixed,
        [(CONTENT_TYPE, HeaderValue::from_static(asset.mime_type))],
        asset.bytes.clone(),
    )
        .into_response()
}

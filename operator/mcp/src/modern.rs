//! The 2026-07-28 revision: what every request carries, and `server/discover`.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::config::Era;
use crate::fault::Failure;
use crate::link::Link;
use crate::message::Call;
use crate::receipt::CapabilityReceipt;

pub(crate) const DISCOVER: &str = "server/discover";

pub(crate) fn version() -> String {
    ProtocolVersion::V_2026_07_28.to_string()
}

/// `_meta` of each request.
pub(crate) fn request_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version(),
        "io.modelcontextprotocol/clientInfo": client_info(),
        "io.modelcontextprotocol/clientCapabilities": {"extensions": client_extensions()},
    })
}

pub(crate) fn client_info() -> Value {
    json!({"name": "fencepost", "version": env!("CARGO_PKG_VERSION")})
}

/// What we understand beyond the protocol: ids that tie the pages of a listing to one snapshot.
pub(crate) fn client_extensions() -> Value {
    json!({"dev.fencepost/resource-snapshot": {}})
}

/// The headers by which intermediaries route a modern request; they must say the same as the body.
pub(crate) fn standard_headers(call: &Call<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("mcp-protocol-version", &version());
    put("mcp-method", call.method);
    if let Some(uri) = call.uri {
        put("mcp-name", &header_text(uri));
    }
    headers
}

/// Plain text where a header can carry it as it is, else `=?base64?...?=`. Text that looks like that form already is
/// encoded as well, or it would be decoded on the other side.
fn header_text(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && value.trim_matches([' ', '\t']) == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(value))
    }
}

/// What the probe found out.
pub(crate) enum Discovery {
    Modern(Box<CapabilityReceipt>),
    /// An answer that lists only versions with a handshake.
    LegacyVersions,
    /// An answer, but not to this question.
    Nonsense,
    /// Versions, none of which we speak.
    NothingInCommon(Vec<String>),
}

/// Asks which versions and capabilities there are.
pub(crate) async fn discover(link: &Link, deadline: Duration) -> Result<Discovery, Failure> {
    let mut result = link
        .call(&Call::new(Era::Modern, DISCOVER), deadline)
        .await?;
    let Some(versions) = result.get("supportedVersions").and_then(Value::as_array) else {
        return Ok(Discovery::Nonsense);
    };
    let versions: Vec<String> = versions
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if versions.contains(&version()) {
        let capabilities = result
            .get_mut("capabilities")
            .map_or_else(|| json!({}), Value::take);
        let info = result
            .get("_meta")
            .and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
        let info = info
            .or_else(|| result.get("serverInfo"))
            .cloned()
            .unwrap_or_default();
        return Ok(Discovery::Modern(Box::new(CapabilityReceipt::new(
            Era::Modern,
            &version(),
            &info,
            capabilities,
        ))));
    }
    Ok(split_versions(versions))
}

/// What a list of versions without ours means.
pub(crate) fn split_versions(versions: Vec<String>) -> Discovery {
    if versions
        .iter()
        .any(|version| crate::legacy::speaks(version))
    {
        Discovery::LegacyVersions
    } else {
        Discovery::NothingInCommon(versions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_travel_plain_or_in_base64() {
        assert_eq!(header_text("docs:///a%20b"), "docs:///a%20b");
        assert_eq!(header_text("docs:///a b"), "docs:///a b");
        assert_eq!(header_text("docs:///ä"), "=?base64?ZG9jczovLy/DpA==?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
        assert_eq!(header_text("a\nb"), "=?base64?YQpi?=");
        assert_eq!(
            header_text("=?base64?eA==?="),
            "=?base64?PT9iYXNlNjQ/ZUE9PT89?="
        );
    }
}

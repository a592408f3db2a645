//! The capability receipt: what a session negotiated, with a digest that changes when any of it does.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::config::Era;

/// What the handshake (legacy) or the discovery (modern) told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityReceipt {
    pub era: Era,
    pub protocol_version: String,
    pub server_name: String,
    pub server_version: String,
    pub capabilities: Value,
    /// `capabilities.extensions`; in the legacy era what is under `experimental` too.
    pub extensions: Value,
    /// Whether `resources.subscribe` was declared.
    pub subscribe: bool,
    /// Whether `resources.listChanged` was declared.
    pub list_changed: bool,
    /// SHA-256 over the canonical JSON of all the others.
    pub digest: [u8; 32],
}

impl CapabilityReceipt {
    pub(crate) fn new(
        era: Era,
        protocol_version: &str,
        server_info: &Value,
        capabilities: Value,
    ) -> Self {
        let text = |key: &str| {
            server_info
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let mut extensions = Map::new();
        let sources: &[&str] = if era == Era::Legacy {
            &["experimental", "extensions"]
        } else {
            &["extensions"]
        };
        for source in sources {
            if let Some(found) = capabilities.get(source).and_then(Value::as_object) {
                extensions.extend(found.clone());
            }
        }
        let declares = |key: &str| {
            capabilities
                .get("resources")
                .and_then(|resources| resources.get(key))
                == Some(&Value::Bool(true))
        };
        let mut receipt = Self {
            era,
            protocol_version: protocol_version.to_owned(),
            server_name: text("name"),
            server_version: text("version"),
            subscribe: declares("subscribe"),
            list_changed: declares("listChanged"),
            capabilities,
            extensions: Value::Object(extensions),
            digest: [0; 32],
        };
        receipt.digest = receipt.compute_digest();
        receipt
    }

    fn compute_digest(&self) -> [u8; 32] {
        let whole = json!({
            "era": self.era.as_str(),
            "protocolVersion": self.protocol_version,
            "serverName": self.server_name,
            "serverVersion": self.server_version,
            "capabilities": self.capabilities,
            "extensions": self.extensions,
        });
        Sha256::digest(Canonical(&whole).to_string()).into()
    }
}

/// JSON with the keys of each object in order, so that equal values have equal text.
struct Canonical<'a>(&'a Value);

impl fmt::Display for Canonical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort_unstable();
                f.write_str("{")?;
                for (n, key) in keys.into_iter().enumerate() {
                    let comma = if n == 0 { "" } else { "," };
                    write!(
                        f,
                        "{comma}{}:{}",
                        Value::from(key.as_str()),
                        Canonical(&map[key])
                    )?;
                }
                f.write_str("}")
            }
            Value::Array(items) => {
                f.write_str("[")?;
                for (n, item) in items.iter().enumerate() {
                    let comma = if n == 0 { "" } else { "," };
                    write!(f, "{comma}{}", Canonical(item))?;
                }
                f.write_str("]")
            }
            scalar => write!(f, "{scalar}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(capabilities: &str) -> CapabilityReceipt {
        let capabilities = serde_json::from_str(capabilities).unwrap_or_default();
        CapabilityReceipt::new(
            Era::Legacy,
            "2025-11-25",
            &json!({"name": "s", "version": "1"}),
            capabilities,
        )
    }

    #[test]
    fn digest_ignores_key_order_and_sees_every_value() {
        let one = receipt(r#"{"resources":{"subscribe":true,"listChanged":true},"logging":{}}"#);
        let two = receipt(r#"{"logging":{},"resources":{"listChanged":true,"subscribe":true}}"#);
        let three = receipt(r#"{"logging":{},"resources":{"listChanged":true,"subscribe":false}}"#);
        assert_eq!(one.digest, two.digest);
        assert_ne!(one.digest, three.digest);
        assert!(one.subscribe && !three.subscribe);
    }

    #[test]
    fn legacy_extensions_may_stand_under_experimental() {
        let found = receipt(r#"{"experimental":{"dev.fencepost/resource-snapshot":{}}}"#);
        assert!(
            found
                .extensions
                .get("dev.fencepost/resource-snapshot")
                .is_some()
        );
    }
}

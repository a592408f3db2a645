//! A resource URI as a manifest names it: the bytes go on the wire as they are written.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An absolute URI. Only a scheme and something after it are asked for: what a server lists is a name, also where RFC 3986
/// would not parse it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceUri(pub String);

impl ResourceUri {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl JsonSchema for ResourceUri {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ResourceUri".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            // With 20,000 of them this is what the API server's budget for rules allows; a regular expression costs three times as
            // much. What the rule lets through and is no URI, `fencepost validate` and the status say.
            "maxLength": 1024,
            "x-kubernetes-validations": [{
                "rule": "self.contains(':')",
                "message": "the URI is not absolute; write the scheme too, as in docs:///guide.md"
            }]
        })
    }
}

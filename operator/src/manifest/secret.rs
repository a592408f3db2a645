//! Secret bytes, which show themselves nowhere.

use std::{collections::BTreeMap, fmt};

/// Bytes that no `Debug`, `Display` or serialisation shows. Reading them takes a call of [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes, for the one place that sends or signs with them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The keys of a `v1/Secret`, `data` decoded, `stringData` over it as in an API server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretData(pub BTreeMap<String, Secret>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_nothing() {
        let data = SecretData(BTreeMap::from([(
            "token".to_owned(),
            Secret::new(*b"hunter2"),
        )]));
        assert_eq!(format!("{data:?}"), r#"SecretData({"token": [redacted]})"#);
        assert_eq!(Secret::new(*b"hunter2").to_string(), "[redacted]");
        assert_eq!(data.0["token"].expose(), b"hunter2");
    }
}

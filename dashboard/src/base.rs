//! Where the dashboard hangs: `""` at the root, `/fencepost` below a proxy's sub-path.
//!
//! The server gives it by context and writes it on `<html data-base>`; the browser reads it there.

use std::sync::Arc;

use leptos::prelude::use_context;

/// A path prefix without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Base(Arc<str>);

impl Base {
    /// Takes `/`, `fencepost`, `/fencepost/` alike.
    pub fn new(prefix: &str) -> Self {
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() {
            Self::default()
        } else {
            Self(format!("/{prefix}").into())
        }
    }

    /// The prefix that the surrounding page was served under.
    pub fn here() -> Self {
        use_context().unwrap_or_default()
    }

    /// What the server wrote on the document.
    #[cfg(feature = "hydrate")]
    pub fn of_document() -> Self {
        use leptos::prelude::document;
        let written = document()
            .document_element()
            .and_then(|html| html.get_attribute("data-base"));
        Self::new(written.as_deref().unwrap_or_default())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// An address of this dashboard, from one that begins with `/`.
    pub fn to(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The JSON behind what is shown.
    pub fn api(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Base;

    #[test]
    fn any_spelling_of_the_prefix_gives_the_same_addresses() {
        for spelling in ["fencepost", "/fencepost", "/fencepost/"] {
            assert_eq!(
                Base::new(spelling).to("/servers"),
                "/fencepost/servers",
                "{spelling}"
            );
        }
        assert_eq!(Base::new("/").to("/servers"), "/servers");
        assert_eq!(Base::new("").api("servers"), "/api/v1/servers");
    }
}

//! The subject's credential as the MCP client asks for it: anew for each request.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use fencepost_mcp::Credentials;
use http::{HeaderName, HeaderValue};

use crate::desired::Credential;

/// The header of one subject; replaced when its Secret changes.
#[derive(Default)]
pub struct SubjectCredential(ArcSwapOption<(HeaderName, HeaderValue)>);

impl SubjectCredential {
    /// Takes the credential in. A value that no header can carry is left out: the manifest's check
    /// has named it already, and the server's 401 says the rest.
    pub fn set(&self, credential: Option<&Credential>) {
        let header = credential.and_then(|credential| {
            let name = HeaderName::try_from(credential.header.as_str()).ok()?;
            let mut value = HeaderValue::from_bytes(credential.value.expose()).ok()?;
            value.set_sensitive(true);
            Some(Arc::new((name, value)))
        });
        self.0.store(header);
    }
}

impl Credentials for SubjectCredential {
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.0.load_full().map(|header| (*header).clone())
    }
}

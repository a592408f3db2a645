//! The egress guard: HTTP clients that connect where the manifest says and nowhere else.
//!
//! Two checks hold together. [`EgressPolicy::check_url`] judges a host that is an address, in whatever spelling the URL
//! standard reads as one (decimal, octal, hex), on every hop. The resolver judges what a name resolves to at the moment
//! of connecting, so a name that changes its mind later (DNS rebinding) gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;
use url::{Host, Url};

use crate::address::{AddressRefusal, check_address};

/// At most this many hops on one's own origin: `/mcp` to `/mcp/`, and one more for good measure.
pub(crate) const MAX_REDIRECTS: usize = 3;

/// Probes a silent TCP peer, so that a stream behind a vanished server ends although MCP has no keepalive of its own.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// Where outbound connections may go.
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy {
    /// `dev` or `--allow-loopback`.
    pub allow_loopback: bool,
    /// From a flag; the environment is never asked. Behind a proxy names are resolved by the proxy, so only addresses
    /// written in the URL are judged here: the proxy must guard the rest.
    pub proxy: Option<Url>,
}

/// Which redirects a client follows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    Never,
    SameOrigin,
}

/// Why a guarded client could not be built.
#[derive(Debug, Error)]
pub enum EgressError {
    #[error("the CA bundle holds no readable PEM certificate; check the secret it comes from")]
    BadCa(#[source] Option<reqwest::Error>),
    #[error("the proxy address is not usable; give it as http://host:port")]
    BadProxy(#[source] reqwest::Error),
    #[error("the HTTP client could not be built")]
    Client(#[source] reqwest::Error),
}

impl EgressPolicy {
    /// Judges the host of a URL if it is an address; a name is judged when it is resolved.
    pub fn check_url(&self, url: &Url) -> Result<(), AddressRefusal> {
        match url.host() {
            Some(Host::Ipv4(address)) => check_address(IpAddr::V4(address), self.allow_loopback),
            Some(Host::Ipv6(address)) => check_address(IpAddr::V6(address), self.allow_loopback),
            Some(Host::Domain(_)) | None => Ok(()),
        }
    }

    /// A client bound to this policy. Decompression is off: a body is as large as it is on the wire.
    pub fn guarded_client(
        &self,
        ca_pem: Option<&[u8]>,
        redirects: Redirects,
    ) -> Result<reqwest::Client, EgressError> {
        self.builder(ca_pem, redirects)?
            .build()
            .map_err(EgressError::Client)
    }

    pub(crate) fn builder(
        &self,
        ca_pem: Option<&[u8]>,
        redirects: Redirects,
    ) -> Result<reqwest::ClientBuilder, EgressError> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("fencepost/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .referer(false)
            .tcp_keepalive(TCP_KEEPALIVE)
            .redirect(match redirects {
                Redirects::Never => reqwest::redirect::Policy::none(),
                Redirects::SameOrigin => self.same_origin(),
            })
            .dns_resolver(GuardedResolver {
                allow_loopback: self.allow_loopback,
                proxy_host: self.proxy.as_ref().and_then(Url::host_str).map(Arc::from),
            });
        if let Some(pem) = ca_pem {
            let bundle = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|e| EgressError::BadCa(Some(e)))?;
            if bundle.is_empty() {
                return Err(EgressError::BadCa(None));
            }
            builder = builder.tls_certs_merge(bundle);
        }
        if let Some(proxy) = &self.proxy {
            builder =
                builder.proxy(reqwest::Proxy::all(proxy.as_str()).map_err(EgressError::BadProxy)?);
        }
        Ok(builder)
    }

    fn same_origin(&self) -> reqwest::redirect::Policy {
        let policy = self.clone();
        reqwest::redirect::Policy::custom(move |attempt| {
            let first = attempt.previous().first().map(Url::origin);
            if attempt.previous().len() > MAX_REDIRECTS || first != Some(attempt.url().origin()) {
                return attempt.stop();
            }
            match policy.check_url(attempt.url()) {
                Ok(()) => attempt.follow(),
                Err(refusal) => attempt.error(refusal),
            }
        })
    }
}

/// Resolves a name and drops every address that the policy refuses.
struct GuardedResolver {
    allow_loopback: bool,
    /// The proxy was named by the operator's own flag, so it may be on this machine.
    proxy_host: Option<Arc<str>>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_loopback =
            self.allow_loopback || self.proxy_host.as_deref() == Some(name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(admitted(found, allow_loopback)?.into_iter()) as Addrs)
        })
    }
}

/// The addresses that may be connected to; an error if the name led only to refused ones.
fn admitted(
    found: impl Iterator<Item = SocketAddr>,
    allow_loopback: bool,
) -> Result<Vec<SocketAddr>, AddressRefusal> {
    let mut refusal = None;
    let mut good = Vec::new();
    for address in found {
        match check_address(address.ip(), allow_loopback) {
            Ok(()) => good.push(address),
            Err(why) => refusal = Some(why),
        }
    }
    match refusal {
        Some(why) if good.is_empty() => Err(why),
        _ => Ok(good),
    }
}

/// The refusal inside a client error, if that is why connecting failed.
pub(crate) fn refusal_in(error: &(dyn std::error::Error + 'static)) -> Option<AddressRefusal> {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(refusal) = current.downcast_ref::<AddressRefusal>() {
            return Some(*refusal);
        }
        cause = current.source();
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_spelling_of_an_address_is_read_as_one() {
        let policy = EgressPolicy {
            allow_loopback: true,
            proxy: None,
        };
        for url in [
            "http://169.254.169.254/",
            "http://2852039166/",
            "http://0xA9FEA9FE/",
            "http://0251.0376.0251.0376/",
            "http://0xa9.254.0251.254./",
            "http://169.254.43518/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::]/",
            "https://[fe80::1]/",
        ] {
            assert!(
                policy.check_url(&Url::parse(url).unwrap()).is_err(),
                "{url} was let through"
            );
        }
        assert!(
            policy
                .check_url(&Url::parse("http://127.0.0.1:8080/mcp").unwrap())
                .is_ok()
        );
    }

    #[test]
    fn a_name_keeps_its_good_addresses_and_fails_when_none_is_left() {
        let bad: SocketAddr = "169.254.169.254:0".parse().unwrap();
        let good: SocketAddr = "10.0.0.1:0".parse().unwrap();
        assert_eq!(admitted([bad, good].into_iter(), false), Ok(vec![good]));
        assert_eq!(
            admitted([bad].into_iter(), false),
            Err(AddressRefusal::LinkLocal)
        );
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_loopback_is_refused_when_connecting() {
        let client = EgressPolicy::default()
            .guarded_client(None, Redirects::Never)
            .unwrap();
        let error = client.get("http://localhost:9/").send().await.unwrap_err();
        assert_eq!(refusal_in(&error), Some(AddressRefusal::Loopback));
    }

    #[test]
    fn a_bundle_without_a_certificate_is_an_error() {
        let policy = EgressPolicy::default();
        assert!(matches!(
            policy.guarded_client(Some(b"junk"), Redirects::Never),
            Err(EgressError::BadCa(_))
        ));
    }
}

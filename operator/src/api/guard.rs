//! What keeps web pages elsewhere from reading a developer's resources.
//!
//! A page can let its own name resolve to 127.0.0.1 and then read answers as its own origin. So a
//! fencepost that listens on loopback answers only requests addressed to a name of this machine.
//! There are no CORS headers anywhere.

use std::net::IpAddr;
use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderName, HeaderValue,
        header::{CACHE_CONTROL, HOST, X_CONTENT_TYPE_OPTIONS},
        uri::Authority,
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
};

use super::problem::ApiError;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// The names that requests may be addressed to.
#[derive(Debug, Clone)]
pub struct Hosts(Option<Arc<[String]>>);

impl Hosts {
    /// Every name: it listens where others are meant to reach it.
    pub fn any() -> Self {
        Self(None)
    }

    /// For a listen address `host:port`: on loopback the machine's own names and `host`, else every name.
    pub fn for_listen(address: &str) -> Self {
        let host = host_of(address);
        let loopback =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !loopback {
            return Self::any();
        }
        let mut hosts = vec![
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        if !hosts.contains(&host) {
            hosts.push(host);
        }
        Self(Some(hosts.into()))
    }

    fn serve(&self, request: &Request) -> Result<(), ApiError> {
        let Some(hosts) = &self.0 else { return Ok(()) };
        // HTTP/2 has the name in the request's target, HTTP/1.1 in the header; both must be ours.
        let header = request
            .headers()
            .get_all(HOST)
            .iter()
            .map(|host| host.to_str().unwrap_or_default());
        let target = request.uri().authority().map(Authority::as_str);
        let mut named = header.chain(target).peekable();
        let served = named.peek().is_some() && named.all(|name| hosts.contains(&host_of(name)));
        if served {
            Ok(())
        } else {
            Err(ApiError::forbidden_host(&hosts.join(", ")))
        }
    }
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`, in lower case.
fn host_of(address: &str) -> String {
    let host = match address
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((v6, _)) => v6,
        None if address.matches(':').count() > 1 => address,
        None => address.split_once(':').map_or(address, |(host, _)| host),
    };
    host.to_ascii_lowercase()
}

/// Refuses requests addressed to other names. To be laid around everything that one listener serves.
pub fn guarded<S: Clone + Send + Sync + 'static>(router: Router<S>, hosts: Hosts) -> Router<S> {
    router.layer(middleware::from_fn_with_state(hosts, addressed_to_us))
}

async fn addressed_to_us(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.serve(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => private(refusal.into_response()).await,
    }
}

/// What every answer bears: it is nobody's to keep, to guess the type of, or to embed.
pub(super) async fn private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        CROSS_ORIGIN_RESOURCE_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn served(listen: &str, host: Option<&str>) -> bool {
        let mut request = Request::builder().uri("/api/v1/servers");
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        Hosts::for_listen(listen)
            .serve(&request.body(axum::body::Body::empty()).unwrap())
            .is_ok()
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_are_served() {
        for host in [
            "localhost:8080",
            "LOCALHOST",
            "127.0.0.1:1",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(served("127.0.0.1:8080", Some(host)), "{host}");
        }
        for host in [
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "",
            "10.0.0.1",
        ] {
            assert!(!served("127.0.0.1:8080", Some(host)), "{host}");
        }
        assert!(!served("[::1]:8080", None));
        assert!(served("127.0.0.2:8080", Some("127.0.0.2:8080")));
    }

    #[test]
    fn elsewhere_every_name_is_served() {
        assert!(served("0.0.0.0:8080", Some("fencepost.agents.svc:8080")));
        assert!(served("10.1.2.3:8080", None));
    }

    #[test]
    fn the_name_of_the_target_counts_too() {
        let request = Request::builder()
            .uri("http://evil.example/api/v1/servers")
            .header(HOST, "localhost")
            .body(axum::body::Body::empty())
            .unwrap();
        assert!(Hosts::for_listen("localhost:0").serve(&request).is_err());
    }
}

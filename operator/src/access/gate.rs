//! The gate: each request meets the table, then the API server's word, and only then its handler.
//!
//! The layer runs after routing, so the route in hand is the one that answers.

use std::{sync::Arc, time::Duration};

use axum::{
    RequestExt as _,
    body::Body,
    extract::{MatchedPath, RawPathParams, Request, State},
    http::{
        HeaderMap, HeaderValue, Method,
        header::{ACCEPT, CACHE_CONTROL},
    },
    middleware::Next,
    response::Response,
};
use fencepost_store::queries::Queries;
use futures::StreamExt as _;
use moka::future::Cache;
use uuid::Uuid;

use super::{
    kubernetes::KubernetesAccess,
    login,
    narrowed::Narrowed,
    question::Question,
    review::Caller,
    rule::{self, CONTENT, LIST, Need, Right, need},
    token::Presented,
};
use crate::{
    api::ApiError,
    web::{LoginPage, Narrowing},
};

/// How long a stream may stay open on one decision. Then the client connects again and is judged again.
const STREAM_LASTS: Duration = Duration::from_mins(5);

/// Resources whose namespace is remembered: those that readers come back to; some hundred bytes each.
const MAX_NAMESPACES: u64 = 16_384;

/// For the look at whose resource it is; the answer itself has its own bound.
const LOOKUP_WAIT: Duration = Duration::from_secs(5);

/// What the gate decides by.
#[derive(Clone)]
pub struct Gate {
    pub(super) access: KubernetesAccess,
    pub(super) page: Arc<LoginPage>,
    queries: Queries,
    /// Namespace of a resource's subject. It never changes: another subject's resource is another resource.
    namespaces: Cache<Uuid, Arc<str>>,
}

/// Why a request goes no further.
pub(super) enum Refusal {
    /// No token, or one that is nobody's.
    Unauthenticated,
    Problem(ApiError),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Problem(error)
    }
}

impl Gate {
    pub fn new(access: KubernetesAccess, queries: Queries) -> Self {
        Self {
            access,
            page: Arc::new(LoginPage::new()),
            queries,
            namespaces: Cache::new(MAX_NAMESPACES),
        }
    }

    /// Refuses unless the caller may read the content of the resource with this id.
    pub async fn content_of(&self, caller: &Arc<Caller>, id: &str) -> Result<(), ApiError> {
        self.of_resource(caller, CONTENT, id).await
    }

    async fn of_resource(
        &self,
        caller: &Arc<Caller>,
        right: Right,
        id: &str,
    ) -> Result<(), ApiError> {
        if let Some(namespace) = self.namespace(id).await? {
            let question = Question::Resource {
                right,
                namespace: Some(namespace),
            };
            return self.access.demand(caller, vec![question]).await;
        }
        // Whether there is such a resource is for those to know who may list them.
        self.access
            .demand(caller, self.access.at_scope(LIST))
            .await?;
        Err(ApiError::no_such_resource(id))
    }

    /// The content belongs to the subject on whose authority it was read, and so its namespace decides.
    async fn namespace(&self, id: &str) -> Result<Option<Arc<str>>, ApiError> {
        // The handler parses the same text in the same way: what is no id here is none there.
        let Ok(id) = Uuid::parse_str(id) else {
            return Ok(None);
        };
        if let Some(known) = self.namespaces.get(&id).await {
            return Ok(Some(known));
        }
        let looked = tokio::time::timeout(LOOKUP_WAIT, self.queries.resource(id)).await;
        let looked = looked.map_err(|_| {
            ApiError::access_undecided("the database does not say whose resource it is.")
        })?;
        let Some(detail) = looked? else {
            return Ok(None);
        };
        let namespace: Arc<str> = detail.resource.subject.namespace.into();
        self.namespaces.insert(id, Arc::clone(&namespace)).await;
        Ok(Some(namespace))
    }

    async fn judge(&self, need: Option<Need>, request: &mut Request) -> Result<(), Refusal> {
        let token = match Presented::of(request.headers()) {
            Presented::Nothing | Presented::Malformed => return Err(Refusal::Unauthenticated),
            Presented::Header(token) => token,
            Presented::Cookie(token) => {
                ours(request.method(), request.headers())?;
                token
            }
        };
        let caller = self.access.caller(&token).await?;
        let caller = caller.ok_or(Refusal::Unauthenticated)?;
        match need {
            None => {
                let path = request.uri().path();
                return Err(ApiError::no_rule(request.method().as_str(), path).into());
            }
            Some(Need::Nothing) => {}
            Some(Need::AtScope(right)) => {
                self.access
                    .demand(&caller, self.access.at_scope(right))
                    .await?;
            }
            Some(Need::Path(path)) => {
                self.access
                    .demand(&caller, vec![Question::Path(path)])
                    .await?;
            }
            Some(Need::OfResource(right)) => {
                // Decoded as the handler gets it.
                let parameters = request.extract_parts::<RawPathParams>().await.ok();
                let id = parameters.as_ref().and_then(|parameters| {
                    parameters
                        .iter()
                        .find_map(|(name, value)| (name == "id").then_some(value))
                });
                self.of_resource(&caller, right, id.unwrap_or_default())
                    .await?;
            }
        }
        let gate = self.clone();
        request
            .extensions_mut()
            .insert(Narrowing::new(move |source| {
                Arc::new(Narrowed {
                    source,
                    gate: gate.clone(),
                    caller: Arc::clone(&caller),
                })
            }));
        Ok(())
    }

    async fn refused(&self, refusal: Refusal, asked: &Asked) -> Response {
        match refusal {
            Refusal::Unauthenticated if asked.page => login::to_login(&asked.target),
            Refusal::Unauthenticated => ApiError::unauthenticated().private().await,
            Refusal::Problem(error) if asked.page => {
                self.page.refused(&asked.headers, &error.into_problem())
            }
            Refusal::Problem(error) => error.private().await,
        }
    }
}

/// What a refusal must know of the request.
struct Asked {
    /// A browser that wants to show a page.
    page: bool,
    /// Path and query.
    target: String,
    headers: HeaderMap,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let path = request.uri().path();
        let programs = path == "/metrics" || path == "/api" || path.starts_with("/api/");
        let html = request
            .headers()
            .get_all(ACCEPT)
            .iter()
            .filter_map(|accept| accept.to_str().ok())
            .any(|accept| accept.contains("text/html"));
        Self {
            page: html && !programs && reads(request.method()),
            target: request
                .uri()
                .path_and_query()
                .map(|target| target.as_str().to_owned())
                .unwrap_or_default(),
            headers: request.headers().clone(),
        }
    }
}

fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Refuses what a browser sends on another site's behalf. `SameSite` keeps the cookie from other sites, but not from
/// another name of the same one; browsers say in `Sec-Fetch-Site` who made them ask, and nothing else sends it.
pub(super) fn ours(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let elsewhere = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site != "same-origin" && site != "none");
    if elsewhere && !reads(method) {
        return Err(ApiError::from_another_site());
    }
    Ok(())
}

/// The layer.
pub async fn admit(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("", MatchedPath::as_str);
    let need = need(request.method(), route);
    if need == Some(Need::Nothing) {
        return kept_by_nobody(next.run(request).await);
    }
    let asked = Asked::of(&request);
    if let Err(refusal) = gate.judge(need, &mut request).await {
        return gate.refused(refusal, &asked).await;
    }
    let response = kept_by_nobody(next.run(request).await);
    if route == rule::EVENTS {
        return ends_after(response, STREAM_LASTS);
    }
    response
}

/// Assets say themselves how long they may be kept; nothing else may be.
fn kept_by_nobody(mut response: Response) -> Response {
    response
        .headers_mut()
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Ends the body in good order when the time is over.
fn ends_after(response: Response, time: Duration) -> Response {
    response
        .map(|body| Body::from_stream(body.into_data_stream().take_until(tokio::time::sleep(time))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_stream_ends_in_good_order() {
        let endless = futures::stream::once(async { Ok::<_, std::io::Error>("event") })
            .chain(futures::stream::pending());
        let response = Response::new(Body::from_stream(endless));
        let body = ends_after(response, Duration::from_millis(20)).into_body();
        let read = tokio::time::timeout(Duration::from_secs(10), axum::body::to_bytes(body, 1024));
        assert_eq!(read.await.unwrap().unwrap(), "event");
    }

    #[test]
    fn only_what_changes_something_must_come_from_our_own_pages() {
        let from = |site: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            headers
        };
        assert!(ours(&Method::POST, &from("same-origin")).is_ok());
        assert!(ours(&Method::POST, &HeaderMap::new()).is_ok());
        assert!(ours(&Method::GET, &from("cross-site")).is_ok());
        for site in ["cross-site", "same-site"] {
            assert!(ours(&Method::POST, &from(site)).is_err(), "{site}");
        }
    }
}

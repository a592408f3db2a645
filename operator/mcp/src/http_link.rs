//! Streamable HTTP, the part that all verbs share: which headers go with a request, where it may go, how much of the
//! answer is read.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::Response;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use url::{Origin, Url};

use crate::config::{ClientLimits, Credentials, Era};
use crate::egress::{EgressError, EgressPolicy, MAX_REDIRECTS, Redirects, refusal_in};
use crate::error::RequestError;
use crate::event::EventSender;
use crate::fault::Failure;
use crate::message::Call;
use crate::modern;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Replies to a server's own requests in flight at once; past it they are dropped, since nobody has a right to them.
const MAX_REPLIES: usize = 4;

/// The error text of a refusal is read this far.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

pub(crate) struct HttpLink {
    client: reqwest::Client,
    origin: Origin,
    /// Moves along redirects of our own origin, so that each costs one detour a session.
    url: RwLock<Url>,
    egress: EgressPolicy,
    credentials: Arc<dyn Credentials>,
    legacy: RwLock<LegacyHeaders>,
    pub(crate) limits: ClientLimits,
    pub(crate) next_id: AtomicU64,
    pub(crate) events: EventSender,
    /// Cancelled when the session is over: every task of this link ends with it.
    pub(crate) over: CancellationToken,
    pub(crate) replies: Arc<Semaphore>,
}

/// What a legacy session adds to each request after `initialize`. Both values are marked sensitive.
#[derive(Default, Clone)]
struct LegacyHeaders {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl HttpLink {
    pub(crate) fn new(
        url: Url,
        ca_pem: Option<&[u8]>,
        egress: EgressPolicy,
        credentials: Arc<dyn Credentials>,
        limits: ClientLimits,
        events: EventSender,
    ) -> Result<Self, EgressError> {
        // Redirects are followed by hand: reqwest would turn a redirected POST into a GET.
        let client = egress
            .builder(ca_pem, Redirects::Never)?
            .connect_timeout(limits.connect_timeout)
            .build()
            .map_err(EgressError::Client)?;
        Ok(Self {
            client,
            origin: url.origin(),
            url: RwLock::new(url),
            egress,
            credentials,
            legacy: RwLock::default(),
            limits,
            next_id: AtomicU64::new(1),
            events,
            over: CancellationToken::new(),
            replies: Arc::new(Semaphore::new(MAX_REPLIES)),
        })
    }

    fn legacy(&self) -> LegacyHeaders {
        self.legacy
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether a legacy session id goes with our requests.
    pub(crate) fn in_session(&self) -> bool {
        self.legacy().session.is_some()
    }

    pub(crate) fn speak_legacy(&self, version: &str) {
        self.legacy
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .version = HeaderValue::from_str(version).ok();
    }

    /// Takes the session id that came with the answer to `initialize`.
    pub(crate) fn take_session(&self, headers: &HeaderMap) {
        let session = headers.get(&SESSION_ID).cloned().map(|mut id| {
            id.set_sensitive(true);
            id
        });
        self.legacy
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .session = session;
    }

    pub(crate) fn legacy_headers(&self) -> HeaderMap {
        let LegacyHeaders { session, version } = self.legacy();
        let mut headers = HeaderMap::new();
        if let Some(session) = session {
            headers.insert(SESSION_ID, session);
        }
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        headers
    }

    pub(crate) fn call_headers(&self, call: &Call<'_>) -> HeaderMap {
        match call.era {
            Era::Legacy => self.legacy_headers(),
            Era::Modern => modern::standard_headers(call),
        }
    }

    pub(crate) async fn post(
        &self,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Failure> {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        self.send(Method::POST, headers, Some(body.into())).await
    }

    /// Sends, following redirects on our own origin with method and body kept. `Ok` is any answer but a redirect.
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<Response, Failure> {
        let mut url = self
            .url
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for hop in 0..=MAX_REDIRECTS {
            self.egress
                .check_url(&url)
                .map_err(|reason| RequestError::AddressRefused { reason })?;
            let mut request = self
                .client
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some((name, mut value)) = self.credentials.header() {
                value.set_sensitive(true);
                request = request.header(name, value);
            }
            if let Some(body) = body.clone() {
                request = request.body(body);
            }
            let response = request
                .send()
                .await
                .map_err(|error| transport_failure(&error))?;
            if !is_redirect(response.status()) {
                // A login page or an error page is not where this server lives.
                if hop > 0 && lives_here(&response) {
                    *self.url.write().unwrap_or_else(PoisonError::into_inner) = url;
                }
                return Ok(response);
            }
            url = self.next_hop(&url, &response)?;
        }
        Err(RequestError::protocol("more redirects than a server needs on its own origin").into())
    }

    fn next_hop(&self, from: &Url, response: &Response) -> Result<Url, Failure> {
        let status = response.status();
        let target = response
            .headers()
            .get(header::LOCATION)
            .and_then(|location| from.join(location.to_str().ok()?).ok())
            .ok_or(RequestError::Http {
                status: status.as_u16(),
            })?;
        if target.origin() != self.origin {
            let host = target.host_str().unwrap_or("no host").to_owned();
            return Err(RequestError::RedirectRefused { host }.into());
        }
        // 303 asks for a GET of something else, which is no answer to a message.
        if status == StatusCode::SEE_OTHER {
            return Err(RequestError::Http {
                status: status.as_u16(),
            }
            .into());
        }
        Ok(target)
    }

    /// Tells the server that the session is over, as far as it listens within `deadline`.
    pub(crate) async fn delete_session(&self, deadline: Duration) {
        let headers = self.legacy_headers();
        *self.legacy.write().unwrap_or_else(PoisonError::into_inner) = LegacyHeaders::default();
        if headers.contains_key(&SESSION_ID) {
            // 405 and whatever else it says: there is nothing more to do about it.
            let _ = tokio::time::timeout(deadline, self.send(Method::DELETE, headers, None)).await;
        }
    }

    /// The body of a refusal, as far as it matters.
    pub(crate) async fn refusal_body(response: Response) -> Vec<u8> {
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL_BYTES - body.len())]);
            if body.len() >= MAX_REFUSAL_BYTES {
                break;
            }
        }
        body
    }

    /// A whole body, or an error as soon as it is too large.
    pub(crate) async fn whole_body(&self, response: Response) -> Result<Vec<u8>, Failure> {
        let limit = self.limits.max_message_bytes;
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| RequestError::Disconnected)?;
            if body.len() + chunk.len() > limit {
                return Err(RequestError::TooLarge { limit }.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whether a redirect led to the server itself, also if it doesn't like the message.
fn lives_here(response: &Response) -> bool {
    let status = response.status();
    !(status.is_server_error()
        || matches!(status.as_u16(), 401 | 403 | 405)
        || is_media(response.headers(), "text/html"))
}

/// Whether a response has this media type.
pub(crate) fn is_media(headers: &HeaderMap, media: &str) -> bool {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    text.split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case(media)
}

/// A client error never shows its URL, whose query may hold a secret; its causes name hosts and TLS faults only.
fn transport_failure(error: &reqwest::Error) -> Failure {
    if let Some(reason) = refusal_in(error) {
        return RequestError::AddressRefused { reason }.into();
    }
    let mut failure = Failure::from(if error.is_timeout() {
        RequestError::Timeout
    } else {
        RequestError::Disconnected
    });
    if error.is_connect() {
        failure.detail = Some(innermost(error).into());
    }
    failure
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error.source();
    let mut text = "connecting failed".to_owned();
    while let Some(current) = cause {
        text = current.to_string();
        cause = current.source();
    }
    text
}

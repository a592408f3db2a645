//! The legacy GET stream: opened once the session stands, opened again after each end, and never silently.
//!
//! Every opening but the one that `connect` waited for is a gap: what was sent meanwhile is lost, and a server's replay
//! cannot be told from no replay.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use rand::RngExt;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::RequestError;
use crate::event::{EndReason, GapReason, SessionEvent};
use crate::fault::{Failure, refused, retry_after};
use crate::http_link::{HttpLink, is_media};
use crate::message::Call;
use crate::session::Shared;
use crate::sse::{SseEvents, SseFault};

/// After so many streams that ended without a single event, the resume point is taken for the cause and forgotten.
const EMPTY_BEFORE_RESTART: u32 = 3;

/// A stream that lived so long was a good one, even if nothing happened on it.
const SETTLED: Duration = Duration::from_secs(30);

enum Opened {
    Stream(SseEvents),
    /// 405: this server has no such stream.
    Never,
    SessionLost,
    Failed {
        reason: String,
        at_least: Option<Duration>,
    },
}

/// What is carried from one stream to the next.
#[derive(Default)]
struct Resume {
    last_event_id: Option<HeaderValue>,
    /// From the `retry` field.
    server_retry: Option<Duration>,
    empty: u32,
    failures: u32,
    was_open: bool,
}

/// Keeps the stream until the session is over. `first` hears when the first attempt has an outcome.
pub(crate) async fn keep_open(
    shared: Arc<Shared>,
    link: Arc<HttpLink>,
    first: oneshot::Sender<()>,
) {
    let over = link.over.clone();
    tokio::select! {
        () = over.cancelled() => {}
        () = run(&shared, &link, first) => {}
    }
    shared.set_stream_open(false);
}

async fn run(shared: &Shared, link: &Arc<HttpLink>, first: oneshot::Sender<()>) {
    let mut resume = Resume::default();
    let mut first = Some(first);
    loop {
        let opened = open(link, &resume).await;
        let (reason, at_least) = match opened {
            Opened::Stream(stream) => {
                // Nobody waits any more: the session has begun without this stream.
                let late = first.as_ref().is_none_or(oneshot::Sender::is_closed);
                shared.set_stream_open(true);
                shared.events.send(SessionEvent::StreamOpened);
                if late {
                    shared.events.send(SessionEvent::Gap {
                        reason: GapReason::StreamReopened,
                    });
                }
                resume.was_open = true;
                tell(&mut first);
                let reason = follow(link, stream, &mut resume).await;
                shared.set_stream_open(false);
                (reason.to_owned(), resume.server_retry)
            }
            Opened::Never => {
                let reason = "the server offers no notification stream (405)".to_owned();
                shared.events.send(SessionEvent::StreamFailed {
                    reason,
                    retry_in: Duration::ZERO,
                });
                tell(&mut first);
                return;
            }
            Opened::SessionLost => {
                tell(&mut first);
                shared.end(EndReason::SessionLost);
                return;
            }
            Opened::Failed { reason, at_least } => {
                resume.failures += 1;
                (reason, at_least)
            }
        };
        let retry_in = backoff(shared.limits.stream_backoff, resume.failures, at_least);
        shared
            .events
            .send(SessionEvent::StreamFailed { reason, retry_in });
        tell(&mut first);
        tokio::time::sleep(retry_in).await;
    }
}

fn tell(first: &mut Option<oneshot::Sender<()>>) {
    if let Some(first) = first.take() {
        let _ = first.send(());
    }
}

async fn open(link: &HttpLink, resume: &Resume) -> Opened {
    let failed = |reason: String| Opened::Failed {
        reason,
        at_least: None,
    };
    let mut headers = link.legacy_headers();
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream"),
    );
    if let Some(id) = &resume.last_event_id {
        headers.insert("last-event-id", id.clone());
    }
    let sent = tokio::time::timeout(
        link.limits.request_timeout,
        link.send(Method::GET, headers, None),
    )
    .await;
    let response = match sent {
        Ok(Ok(response)) => response,
        Ok(Err(Failure { error, .. })) => return failed(error.to_string()),
        Err(_) => return failed("no response within the deadline".to_owned()),
    };
    let status = response.status();
    if status == StatusCode::OK && is_media(response.headers(), "text/event-stream") {
        let limits = &link.limits;
        return Opened::Stream(SseEvents::new(
            response,
            limits.max_message_bytes,
            limits.stream_idle,
        ));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        return Opened::Never;
    }
    if status.is_success() {
        return failed(format!(
            "status {} without an event stream",
            status.as_u16()
        ));
    }
    let response_headers = response.headers().clone();
    let read = tokio::time::timeout(
        link.limits.request_timeout,
        HttpLink::refusal_body(response),
    )
    .await;
    let call = Call::new(crate::Era::Legacy, "GET");
    let body = read.unwrap_or_default();
    let failure = refused(
        &call,
        0,
        link.in_session(),
        status,
        &response_headers,
        &body,
    );
    // Before the stream ever stood, a refusal may as well mean that there is no such route; a session that is lost so
    // early shows itself on the next request.
    if failure.error == RequestError::SessionLost && resume.was_open {
        return Opened::SessionLost;
    }
    Opened::Failed {
        reason: format!("HTTP status {}", status.as_u16()),
        at_least: retry_after(&response_headers),
    }
}

/// Passes messages on until the stream ends, and says why it did.
async fn follow(link: &Arc<HttpLink>, mut stream: SseEvents, resume: &mut Resume) -> &'static str {
    let opened_at = Instant::now();
    let (mut events, mut messages) = (0u64, 0u64);
    let reason = loop {
        match stream.next().await {
            None => break "the server ended the stream",
            Some(Err(SseFault::TooLarge)) => break "an event was larger than the limit",
            Some(Err(SseFault::Broken)) => break "the connection broke",
            Some(Err(SseFault::Idle)) => break "nothing came within the idle limit",
            Some(Err(SseFault::NotText)) => break "an event was not UTF-8",
            Some(Ok(event)) => {
                events += 1;
                if let Some(id) = &event.id {
                    // An empty id takes the resume point back, as the standard has it.
                    resume.last_event_id = (!id.is_empty())
                        .then(|| HeaderValue::from_str(id).ok())
                        .flatten();
                }
                if let Some(retry) = event.retry {
                    resume.server_retry = Some(Duration::from_millis(retry));
                }
                messages += u64::from(event.data.as_ref().is_some_and(|data| !data.is_empty()));
                link.absorb_frame(event.data.as_deref());
            }
        }
    };
    resume.empty = if events == 0 { resume.empty + 1 } else { 0 };
    if resume.empty >= EMPTY_BEFORE_RESTART {
        resume.last_event_id = None;
    }
    let good = messages > 0 || opened_at.elapsed() >= SETTLED;
    resume.failures = if good { 0 } else { resume.failures + 1 };
    reason
}

/// Doubles with each failure up to the longest wait, then takes a random half off it, so that a server that comes back
/// does not meet everybody at once. What the server asked for is waited for, within the same longest wait.
fn backoff(
    (first, longest): (Duration, Duration),
    failures: u32,
    at_least: Option<Duration>,
) -> Duration {
    let doubled = first
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(longest);
    let jittered = doubled.mul_f64(rand::rng().random_range(0.5..=1.0));
    jittered.max(at_least.unwrap_or_default().min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_is_capped_and_hears_the_server() {
        let bounds = (Duration::from_millis(100), Duration::from_secs(3));
        for (failures, most) in [
            (0, 100),
            (1, 100),
            (2, 200),
            (4, 800),
            (20, 3000),
            (u32::MAX, 3000),
        ] {
            let wait = backoff(bounds, failures, None).as_millis();
            assert!(
                wait * 2 >= most && wait <= most,
                "{failures} failures: {wait} ms"
            );
        }
        assert_eq!(
            backoff(bounds, 0, Some(Duration::from_secs(2))),
            Duration::from_secs(2)
        );
        assert_eq!(
            backoff(bounds, 0, Some(Duration::from_secs(999))),
            Duration::from_secs(3)
        );
    }
}

//! POST: one request and its answer, whether it comes as JSON or on a stream of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::RequestError;
use crate::fault::{Failure, refused, settle};
use crate::http_link::{HttpLink, is_media};
use crate::inbox::absorb;
use crate::legacy::INITIALIZE;
use crate::link::{ListenFeed, ListenSignal, ListenStop};
use crate::listen::{Heard, hear};
use crate::message::{AnswerId, Call, Incoming, Outcome, decode};
use crate::sse::{SseEvents, SseFault};

/// What follows the answer on its stream is still heard for so long; most servers end the stream at once.
const AFTER_ANSWER: Duration = Duration::from_secs(5);

/// An acknowledgement's body is at most `{}` or a few words.
const ACK_DRAIN: Duration = Duration::from_millis(200);

impl HttpLink {
    pub(crate) async fn call(
        self: &Arc<Self>,
        call: &Call<'_>,
        deadline: Duration,
    ) -> Result<Value, Failure> {
        // One clock for connecting, redirects, headers and the whole body: keepalives do not wind it up again.
        tokio::time::timeout(deadline, self.exchange(call))
            .await
            .unwrap_or_else(|_| Err(RequestError::Timeout.into()))
    }

    async fn exchange(self: &Arc<Self>, call: &Call<'_>) -> Result<Value, Failure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let in_session = self.in_session();
        let response = self.post(self.call_headers(call), call.encode(id)).await?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = Self::refusal_body(response).await;
            return Err(refused(call, id, in_session, status, &headers, &body));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            let detail = format!(
                "status {} to a request, which announces no answer",
                status.as_u16()
            );
            return Err(RequestError::protocol(detail).into());
        }
        if call.method == INITIALIZE {
            self.take_session(response.headers());
        }
        let outcome = if is_media(response.headers(), "text/event-stream") {
            self.answer_on_stream(
                id,
                SseEvents::new(response, self.limits.max_message_bytes, None),
            )
            .await?
        } else {
            let body = self.whole_body(response).await?;
            self.pick_answer(id, decode(&body)).unwrap_or_else(|| {
                Err(RequestError::protocol("the body holds no answer to the request").into())
            })?
        };
        settle(call, in_session, outcome)
    }

    async fn answer_on_stream(
        self: &Arc<Self>,
        id: u64,
        mut stream: SseEvents,
    ) -> Result<Outcome, Failure> {
        while let Some(event) = stream.next().await {
            let event = event.map_err(|fault| self.stream_failure(fault))?;
            let Some(data) = event.data.filter(|data| !data.is_empty()) else {
                continue;
            };
            if let Some(answer) = self.pick_answer(id, decode(data.as_bytes())) {
                self.hear_the_rest(stream);
                return answer;
            }
        }
        Err(RequestError::Disconnected.into())
    }

    fn stream_failure(&self, fault: SseFault) -> Failure {
        match fault {
            SseFault::TooLarge => RequestError::TooLarge {
                limit: self.limits.max_message_bytes,
            }
            .into(),
            SseFault::NotText => RequestError::protocol("the answer's stream is not UTF-8").into(),
            SseFault::Broken | SseFault::Idle => RequestError::Disconnected.into(),
        }
    }

    /// Finds the answer to request `id`; everything else is absorbed, what came before it first.
    fn pick_answer(
        self: &Arc<Self>,
        id: u64,
        messages: Vec<Incoming>,
    ) -> Option<Result<Outcome, Failure>> {
        let mut answer = None;
        for message in messages {
            match message {
                Incoming::Answer {
                    id: theirs,
                    outcome,
                } if answer.is_none() && theirs.answers(id) => {
                    answer = Some(
                        if theirs == AnswerId::Absent && matches!(outcome, Outcome::Result(_)) {
                            Err(RequestError::protocol("a result that names no request").into())
                        } else {
                            Ok(outcome)
                        },
                    );
                }
                other => self.absorb(other),
            }
        }
        answer
    }

    /// Notifications may follow the answer; dropping the stream at once would lose them, and the connection with them.
    fn hear_the_rest(self: &Arc<Self>, mut stream: SseEvents) {
        let link = Arc::clone(self);
        tokio::spawn(async move {
            let rest = async {
                while let Some(Ok(event)) = stream.next().await {
                    link.absorb_frame(event.data.as_deref());
                }
            };
            tokio::select! {
                () = link.over.cancelled() => {}
                _ = tokio::time::timeout(AFTER_ANSWER, rest) => {}
            }
        });
    }

    pub(crate) fn absorb_frame(self: &Arc<Self>, data: Option<&str>) {
        for message in data
            .filter(|data| !data.is_empty())
            .map(|data| decode(data.as_bytes()))
            .unwrap_or_default()
        {
            self.absorb(message);
        }
    }

    /// Passes a message on; a server's own request is answered at once, on a POST of its own.
    pub(crate) fn absorb(self: &Arc<Self>, message: Incoming) {
        let Some(reply) = absorb(&self.events, message) else {
            return;
        };
        let Ok(permit) = Arc::clone(&self.replies).try_acquire_owned() else {
            return;
        };
        let link = Arc::clone(self);
        tokio::spawn(async move {
            let deadline = link.limits.request_timeout;
            tokio::select! {
                () = link.over.cancelled() => {}
                _ = link.notify(reply, deadline) => {}
            }
            drop(permit);
        });
    }

    /// Sends what has no answer. Every success counts as an acknowledgement, whatever its body: 200 with nothing,
    /// `null` or `{}`, 202 with or without a type, 204.
    pub(crate) async fn notify(
        self: &Arc<Self>,
        message: Vec<u8>,
        deadline: Duration,
    ) -> Result<(), Failure> {
        let exchange = async {
            let response = self.post(self.legacy_headers(), message).await?;
            let status = response.status();
            if status.is_success() {
                // Read to the end where it is near, so that the connection can be used again.
                let _ = tokio::time::timeout(ACK_DRAIN, Self::refusal_body(response)).await;
                return Ok(());
            }
            let headers = response.headers().clone();
            let body = Self::refusal_body(response).await;
            // No request has id 0, so an error in the body is one that names none.
            Err(refused(
                &Call::new(crate::Era::Legacy, "notification"),
                0,
                self.in_session(),
                status,
                &headers,
                &body,
            ))
        };
        tokio::time::timeout(deadline, exchange)
            .await
            .unwrap_or_else(|_| Err(RequestError::Timeout.into()))
    }

    /// Opens a listen stream; it is pumped until it ends or the feed is dropped.
    pub(crate) async fn listen(self: &Arc<Self>, call: &Call<'_>) -> Result<ListenFeed, Failure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let response = self.post(self.call_headers(call), call.encode(id)).await?;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = Self::refusal_body(response).await;
            return Err(refused(call, id, false, status, &headers, &body));
        }
        if !is_media(response.headers(), "text/event-stream") {
            let body = self.whole_body(response).await?;
            let answer = self.pick_answer(id, decode(&body)).unwrap_or_else(|| {
                Err(RequestError::protocol(
                    "the answer to a listen request is neither a stream nor an error",
                )
                .into())
            })?;
            settle(call, false, answer)?;
            return Err(RequestError::protocol(
                "the listen request was completed before it was acknowledged",
            )
            .into());
        }
        let stop = self.over.child_token();
        // An acknowledgement and an end: two signals in a stream's life.
        let (tell, signals) = mpsc::channel(4);
        let events = SseEvents::new(
            response,
            self.limits.max_message_bytes,
            self.limits.stream_idle,
        );
        tokio::spawn(Arc::clone(self).pump_listen(id, call.method, events, tell, stop.clone()));
        Ok(ListenFeed {
            signals,
            stop: ListenStop::Http {
                _stream: stop.drop_guard(),
            },
        })
    }

    async fn pump_listen(
        self: Arc<Self>,
        id: u64,
        method: &'static str,
        mut stream: SseEvents,
        tell: mpsc::Sender<ListenSignal>,
        stop: CancellationToken,
    ) {
        let call = Call::new(crate::Era::Modern, method);
        let pump = async {
            while let Some(Ok(event)) = stream.next().await {
                let Some(data) = event.data.filter(|data| !data.is_empty()) else {
                    continue;
                };
                for message in decode(data.as_bytes()) {
                    match hear(&call, id, message) {
                        Heard::Other(message) => self.absorb(message),
                        Heard::Signal(signal) => {
                            let last = !matches!(signal, ListenSignal::Acknowledged(_));
                            let _ = tell.send(signal).await;
                            if last {
                                return;
                            }
                        }
                    }
                }
            }
            let _ = tell.send(ListenSignal::Broken).await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = pump => {}
        }
    }
}

//! The live stream: server-sent events that say "look again".

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    http::HeaderName,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use fencepost_views::{LiveEvent, LiveKind};
use futures::{Stream, StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::{ApiState, openapi::Refusals, parameters::Parameters, problem::ApiError};
use crate::live::Subscription;

/// Proxies close what is silent for a minute, some sooner.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Tells a proxy of the nginx family not to gather the stream before passing it on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Signals as they happen. After (re)connecting and after `resync` everything is to be looked at again.
#[utoipa::path(get, path = "/api/v1/events", tag = "events",
    responses((status = 200, body = LiveEvent, content_type = "text/event-stream"), Refusals))]
pub(super) async fn stream(
    State(state): State<ApiState>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    parameters.end()?;
    let subscription = state
        .live
        .subscribe()
        .ok_or_else(ApiError::too_many_streams)?;
    let events = Sse::new(signals(subscription, state.shutdown))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("alive"));
    Ok(([(ACCEL_BUFFERING, "no")], events).into_response())
}

/// Until the shutdown. The comment at the beginning sends the head of the answer on its way.
fn signals(
    subscription: Subscription,
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let told = stream::unfold(subscription, |mut subscription| async move {
        subscription
            .next()
            .await
            .map(|signal| (Ok(event(&signal)), subscription))
    });
    stream::once(async { Ok(Event::default().comment("listening")) })
        .chain(told)
        .take_until(shutdown.cancelled_owned())
}

fn event(signal: &LiveEvent) -> Event {
    let kind = match signal.kind {
        LiveKind::Resource => "resource",
        LiveKind::Server => "server",
        LiveKind::Index => "index",
        LiveKind::Sample => "sample",
        LiveKind::Resync => "resync",
    };
    // A signal of a word and a name always has JSON; without data it would still say what moved.
    let event = Event::default().event(kind);
    event.clone().json_data(signal).unwrap_or(event)
}

//! From a configuration to a session: the link, the era, the first notification stream.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::{ConnectConfig, Era, Protocol, Transport};
use crate::detect::negotiate;
use crate::error::{ConnectError, RequestError};
use crate::event::{Events, SessionEvent, event_channel};
use crate::http_link::HttpLink;
use crate::http_stream;
use crate::link::Link;
use crate::session::{Session, Shared};
use crate::stdio::StdioLink;

/// Opens a session. Each phase has a deadline of its own; see [`crate::ClientLimits`].
pub async fn connect(config: ConnectConfig) -> Result<(Session, Events), ConnectError> {
    let ConnectConfig {
        transport,
        protocol,
        remembered_era,
        credentials,
        egress,
        limits,
        allow_stdio,
    } = config;
    let (shared, events) = match transport {
        Transport::Http { url, ca_pem } => {
            let (sender, events) = event_channel(limits.event_buffer);
            let link = HttpLink::new(
                url,
                ca_pem.as_deref(),
                egress,
                credentials,
                limits.clone(),
                sender.clone(),
            )?;
            let link = Link::Http(Arc::new(link));
            let receipt = match negotiate(&link, protocol, remembered_era, &limits).await {
                Ok(receipt) => receipt,
                Err(error) => {
                    link.forget_session(limits.probe_timeout).await;
                    return Err(error);
                }
            };
            (Shared::new(link, receipt, limits, sender), events)
        }
        Transport::Stdio { .. } if !allow_stdio => return Err(ConnectError::StdioNotAllowed),
        Transport::Stdio { command, args, env } => {
            let spawn = || {
                let (sender, events) = event_channel(limits.event_buffer);
                let link = StdioLink::spawn(&command, &args, &env, &limits, sender.clone())?;
                Ok::<_, ConnectError>((Link::Stdio(link), sender, events))
            };
            let (mut link, mut sender, mut events) = spawn()?;
            let mut outcome = negotiate(&link, protocol, remembered_era, &limits).await;
            // A strict legacy server may die of a request before `initialize`: another child, and no probe.
            if protocol == Protocol::Auto && matches!(&outcome, Err(error) if died(error)) {
                (link, sender, events) = spawn()?;
                outcome = negotiate(&link, Protocol::Legacy, None, &limits).await;
            }
            (Shared::new(link, outcome?, limits, sender), events)
        }
    };
    let shared = Arc::new(shared);
    // Made before the streams, so that giving up on `connect` half-way ends them too.
    let session = Session::new(Arc::clone(&shared));
    open_first_stream(&shared).await;
    Ok((session, events))
}

fn died(error: &ConnectError) -> bool {
    matches!(error.request_error(), Some(RequestError::Disconnected))
}

/// Subscriptions made before the stream stands may go unheard, so its first outcome is awaited, within the probe's
/// deadline; a stream that comes later is told as a gap.
async fn open_first_stream(shared: &Arc<Shared>) {
    match (&shared.link, shared.receipt.era) {
        (Link::Http(link), Era::Legacy) => {
            let (tell, first) = oneshot::channel();
            tokio::spawn(http_stream::keep_open(
                Arc::clone(shared),
                Arc::clone(link),
                tell,
            ));
            let _ = tokio::time::timeout(shared.limits.probe_timeout, first).await;
        }
        (_, Era::Modern) if shared.receipt.list_changed => {
            let mut listening = shared.listening.lock().await;
            if let Err(failure) = listening.reopen(shared, BTreeSet::new()).await {
                // The next `watch` tries again; until then changes of the list are found by scans.
                let reason = failure.error.to_string();
                shared.events.send(SessionEvent::StreamFailed {
                    reason,
                    retry_in: Duration::ZERO,
                });
            }
        }
        _ => {}
    }
}

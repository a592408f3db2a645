//! The legacy handshake: `initialize`, then `notifications/initialized`, whose acknowledgement is awaited, since strict
//! servers refuse whatever overtakes it.

use std::time::Duration;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::config::Era;
use crate::error::RequestError;
use crate::fault::Failure;
use crate::link::Link;
use crate::message::{Call, notification};
use crate::modern::{client_extensions, client_info};
use crate::receipt::CapabilityReceipt;

pub(crate) const INITIALIZE: &str = "initialize";
const INITIALIZED: &str = "notifications/initialized";

/// Newest first. The second is what is stepped down to, once, when a server answers 400 to the first.
fn versions() -> [ProtocolVersion; 4] {
    [
        ProtocolVersion::V_2025_11_25,
        ProtocolVersion::V_2025_06_18,
        ProtocolVersion::V_2025_03_26,
        ProtocolVersion::V_2024_11_05,
    ]
}

pub(crate) fn speaks(version: &str) -> bool {
    versions().iter().any(|known| known.as_str() == version)
}

/// Why a handshake came to nothing.
pub(crate) enum HandshakeFailure {
    Request {
        phase: &'static str,
        failure: Failure,
    },
    /// The server chose a version that we do not speak.
    Version(String),
}

/// Opens a session. `deadline` is that of each of the two requests.
pub(crate) async fn handshake(
    link: &Link,
    deadline: Duration,
) -> Result<CapabilityReceipt, HandshakeFailure> {
    let [newest, older, ..] = versions();
    match attempt(link, newest.as_str(), deadline).await {
        Err(HandshakeFailure::Request { failure, .. }) if rejects_version(&failure) => {
            link.forget_session(deadline).await;
            attempt(link, older.as_str(), deadline).await
        }
        outcome => outcome,
    }
}

/// Servers that know neither the newest version nor how to negotiate answer 400, with or without a reason.
fn rejects_version(failure: &Failure) -> bool {
    let speaks_of_version = failure
        .rpc
        .as_ref()
        .is_some_and(|rpc| rpc.message.to_lowercase().contains("protocol version"));
    failure.status == Some(400) || speaks_of_version
}

async fn attempt(
    link: &Link,
    version: &str,
    deadline: Duration,
) -> Result<CapabilityReceipt, HandshakeFailure> {
    let at = |phase| move |failure: Failure| HandshakeFailure::Request { phase, failure };
    let call = Call::new(Era::Legacy, INITIALIZE)
        .with("protocolVersion", version)
        .with("capabilities", json!({"experimental": client_extensions()}))
        .with("clientInfo", client_info());
    let mut result = link.call(&call, deadline).await.map_err(at(INITIALIZE))?;

    let Some(chosen) = result
        .get("protocolVersion")
        .and_then(Value::as_str)
        .map(str::to_owned)
    else {
        let error =
            RequestError::protocol("`protocolVersion` is missing from the answer to `initialize`");
        return Err(at(INITIALIZE)(error.into()));
    };
    if !speaks(&chosen) {
        return Err(HandshakeFailure::Version(chosen));
    }
    link.speak_legacy(&chosen);
    link.notify(notification(INITIALIZED, None), deadline)
        .await
        .map_err(at(INITIALIZED))?;

    let capabilities = result
        .get_mut("capabilities")
        .map_or_else(|| json!({}), Value::take);
    let info = result.get("serverInfo").cloned().unwrap_or_default();
    Ok(CapabilityReceipt::new(
        Era::Legacy,
        &chosen,
        &info,
        capabilities,
    ))
}

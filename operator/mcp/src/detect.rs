//! Which era a server speaks, and the receipt of having agreed on it.
//!
//! `Auto` asks `server/discover` first. Only a modern answer means modern; anything else, silence, HTML and an answer
//! with nothing but 2025 versions included, means legacy. Answers that say nothing about the era end the attempt.

use std::time::Duration;

use rmcp::model::ErrorCode;
use serde_json::Value;

use crate::config::{ClientLimits, Era, Protocol};
use crate::error::{ConnectError, RequestError};
use crate::fault::Failure;
use crate::legacy::{self, HandshakeFailure};
use crate::link::Link;
use crate::modern::{self, Discovery};
use crate::receipt::CapabilityReceipt;

/// Agrees with the server on an era and a version.
pub(crate) async fn negotiate(
    link: &Link,
    protocol: Protocol,
    remembered: Option<Era>,
    limits: &ClientLimits,
) -> Result<CapabilityReceipt, ConnectError> {
    let probe_deadline = limits.probe_timeout.min(limits.request_timeout);
    match (protocol, remembered) {
        (Protocol::Legacy, _) => open_legacy(link, limits.request_timeout).await,
        (Protocol::Modern, _) => match probe(link, limits.request_timeout).await? {
            Probe::Modern(receipt) => Ok(receipt),
            Probe::Legacy(Some(failure)) => Err(connect_error(modern::DISCOVER, failure)),
            Probe::Legacy(None) => Err(ConnectError::NoCommonVersion {
                offered: vec!["legacy versions".into()],
            }),
        },
        (Protocol::Auto, Some(Era::Legacy)) => {
            match open_legacy(link, limits.request_timeout).await {
                Err(error) if may_have_changed_era(&error) => {
                    match probe(link, probe_deadline).await? {
                        Probe::Modern(receipt) => Ok(receipt),
                        Probe::Legacy(_) => Err(error),
                    }
                }
                outcome => outcome,
            }
        }
        (Protocol::Auto, _) => match probe(link, probe_deadline).await? {
            Probe::Modern(receipt) => Ok(receipt),
            Probe::Legacy(_) => open_legacy(link, limits.request_timeout).await,
        },
    }
}

enum Probe {
    Modern(CapabilityReceipt),
    /// With the failure that said so, if it was one.
    Legacy(Option<Failure>),
}

async fn probe(link: &Link, deadline: Duration) -> Result<Probe, ConnectError> {
    match modern::discover(link, deadline).await {
        Ok(Discovery::Modern(receipt)) => Ok(Probe::Modern(*receipt)),
        Ok(Discovery::LegacyVersions | Discovery::Nonsense) => Ok(Probe::Legacy(None)),
        Ok(Discovery::NothingInCommon(offered)) => Err(ConnectError::NoCommonVersion { offered }),
        Err(failure) => judge(failure),
    }
}

/// What a failed probe says about the era.
fn judge(failure: Failure) -> Result<Probe, ConnectError> {
    if let Some(rpc) = &failure.rpc {
        let is = |code: ErrorCode| rpc.code == i64::from(code.0);
        if is(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION) {
            let supported = rpc
                .data
                .get("supported")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let supported = supported
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            return match modern::split_versions(supported) {
                Discovery::NothingInCommon(offered) => {
                    Err(ConnectError::NoCommonVersion { offered })
                }
                _ => Ok(Probe::Legacy(Some(failure))),
            };
        }
        if is(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY) || is(ErrorCode::HEADER_MISMATCH) {
            return Err(connect_error(modern::DISCOVER, failure));
        }
    }
    let says_nothing = failure.detail.is_some()
        || matches!(
            failure.error,
            RequestError::AddressRefused { .. }
                | RequestError::RedirectRefused { .. }
                | RequestError::RateLimited { .. }
        );
    if says_nothing {
        Err(connect_error(modern::DISCOVER, failure))
    } else {
        Ok(Probe::Legacy(Some(failure)))
    }
}

async fn open_legacy(link: &Link, deadline: Duration) -> Result<CapabilityReceipt, ConnectError> {
    legacy::handshake(link, deadline)
        .await
        .map_err(|failure| match failure {
            HandshakeFailure::Request { phase, failure } => connect_error(phase, failure),
            HandshakeFailure::Version(chosen) => ConnectError::NoCommonVersion {
                offered: vec![chosen],
            },
        })
}

/// A server that was legacy when last seen and now answers `initialize` in one of these ways may have been upgraded.
fn may_have_changed_era(error: &ConnectError) -> bool {
    match error {
        ConnectError::NoCommonVersion { .. } => true,
        ConnectError::Handshake { source, .. } => matches!(
            source,
            RequestError::MethodNotFound
                | RequestError::Server { .. }
                | RequestError::Http { .. }
                | RequestError::Protocol { .. }
                | RequestError::NotFound { .. }
        ),
        _ => false,
    }
}

fn connect_error(phase: &'static str, failure: Failure) -> ConnectError {
    match failure.detail {
        Some(detail) => ConnectError::Unreachable {
            detail: detail.into(),
        },
        None => ConnectError::Handshake {
            phase,
            source: failure.error,
        },
    }
}

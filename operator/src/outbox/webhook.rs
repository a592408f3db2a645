//! One webhook request: `CloudEvents` in structured JSON, signed as Standard Webhooks has it.
//!
//! The id is the event's, the same at each try; timestamp and signature are of this try. With several
//! keys there are several signatures, so that a receiver may change to the next key at its leisure.

use std::{error::Error, time::Duration};

use chrono::Utc;
use fencepost_mcp::{EgressError, EgressPolicy, Redirects};
use http::{HeaderValue, StatusCode, header::CONTENT_TYPE};
use standardwebhooks::{
    HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook, WebhookError,
};
use url::Url;

use crate::desired::DesiredIndex;

/// What is read of an answer that is not 2xx: the beginning of a sentence that tells why.
const MAX_ANSWER: usize = 1024;
/// Characters of it that are shown.
const MAX_SHOWN: usize = 200;

/// Where an index is told.
pub(super) struct Endpoint {
    client: reqwest::Client,
    egress: EgressPolicy,
    url: Url,
    keys: Vec<Webhook>,
    timeout: Duration,
}

/// The index cannot be told at all until its object changes.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndpointError {
    #[error("{0}")]
    Untold(String),
    #[error("the webhook's URL cannot be read; write it as https://host/path")]
    Url(#[source] url::ParseError),
    #[error(transparent)]
    Client(#[from] EgressError),
    #[error("a signing key cannot be used; replace it in the index's Secret")]
    Key(#[source] WebhookError),
}

/// The receiver did not confirm. `outcome` is a stable word for the metric.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub outcome: &'static str,
    pub message: String,
    /// The receiver said that it is gone for good.
    pub gone: bool,
}

impl Refusal {
    fn new(outcome: &'static str, message: impl Into<String>) -> Self {
        Self {
            outcome,
            message: message.into(),
            gone: false,
        }
    }
}

impl Endpoint {
    pub fn new(
        index: &DesiredIndex,
        egress: &EgressPolicy,
        timeout: Duration,
    ) -> Result<Self, EndpointError> {
        let channel = index
            .channel
            .as_ref()
            .map_err(|why| EndpointError::Untold(why.clone()))?;
        let keys = channel
            .signing_secrets
            .iter()
            .map(|key| Webhook::from_bytes(key.expose().to_vec()))
            .collect::<Result<_, _>>()
            .map_err(EndpointError::Key)?;
        Ok(Self {
            client: egress.guarded_client(channel.ca_pem.as_deref(), Redirects::Never)?,
            egress: egress.clone(),
            url: Url::parse(&index.url).map_err(EndpointError::Url)?,
            keys,
            timeout,
        })
    }

    /// Tells the receiver once.
    pub async fn tell(&self, id: &str, body: Vec<u8>) -> Result<(), Refusal> {
        if let Err(refusal) = self.egress.check_url(&self.url) {
            return Err(Refusal::new("egress_refused", refusal.to_string()));
        }
        let timestamp = Utc::now().timestamp();
        let mut request = self
            .client
            .post(self.url.clone())
            .timeout(self.timeout)
            .header(
                CONTENT_TYPE,
                HeaderValue::from_static("application/cloudevents+json"),
            )
            .header(HEADER_WEBHOOK_ID, id)
            .header(HEADER_WEBHOOK_TIMESTAMP, timestamp);
        let signatures: Vec<String> = self
            .keys
            .iter()
            .filter_map(|key| key.sign(id, timestamp, &body).ok())
            .collect();
        if !signatures.is_empty() {
            request = request.header(HEADER_WEBHOOK_SIGNATURE, signatures.join(" "));
        }
        let response = request
            .body(body)
            .send()
            .await
            .map_err(|error| self.unanswered(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let said = beginning(response).await;
        Err(refused(status, &said))
    }

    fn unanswered(&self, error: &reqwest::Error) -> Refusal {
        if error.is_timeout() {
            return Refusal::new(
                "timeout",
                format!("no answer within {} s", self.timeout.as_secs_f64()),
            );
        }
        // The innermost cause says it best, and does not show the URL.
        let mut cause: &dyn Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let outcome = if error.is_connect() {
            "no_connection"
        } else {
            "broken"
        };
        let what = if error.is_connect() {
            "cannot connect"
        } else {
            "the connection broke"
        };
        let cause = if std::ptr::eq(cause, error as &dyn Error) {
            String::new()
        } else {
            format!(": {}", shown(&cause.to_string()))
        };
        Refusal::new(outcome, format!("{what}{cause}"))
    }
}

fn refused(status: StatusCode, said: &str) -> Refusal {
    let said = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    if status.is_redirection() {
        return Refusal::new(
            "redirect",
            format!("answered {status}; redirects are not followed, give the index the final URL"),
        );
    }
    if status == StatusCode::GONE {
        return Refusal {
            outcome: "gone",
            message: format!(
                "answered {status}: the receiver says it is gone for good; delete the index or mend its URL{said}"
            ),
            gone: true,
        };
    }
    let outcome = if status.is_server_error() {
        "server_error"
    } else {
        "client_error"
    };
    Refusal::new(outcome, format!("answered {status}{said}"))
}

/// The first bytes of an answer, as one line. What cannot be read is no loss.
async fn beginning(mut response: reqwest::Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MAX_ANSWER - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() >= MAX_ANSWER {
            break;
        }
    }
    shown(&String::from_utf8_lossy(&bytes))
}

/// One line, bounded, without characters that steer a terminal.
fn shown(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_SHOWN)
        .collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_receiver_said_and_no_more() {
        let refusal = refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            &shown("no\u{1b}[31m room\n"),
        );
        assert_eq!(
            refusal,
            Refusal::new(
                "server_error",
                "answered 500 Internal Server Error: no [31m room"
            )
        );
        assert!(refused(StatusCode::GONE, "").gone);
        assert_eq!(refused(StatusCode::FOUND, "elsewhere").outcome, "redirect");
        assert_eq!(shown(&"x".repeat(5000)).len(), MAX_SHOWN);
    }
}

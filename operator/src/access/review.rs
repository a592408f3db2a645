//! The two questions to the API server: whose token is this (`TokenReview`), and may they (`SubjectAccessReview`).
//!
//! Requests are sent and answers read here, not by the client's own typed calls: those log an answer that they cannot read,
//! and a `TokenReview` holds the token. No error here has text of an answer.

use std::{collections::BTreeMap, time::Duration};

use http::{
    Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Client, client::Body};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Semaphore;

use super::{
    question::Question,
    token::{Token, TokenDigest},
};

/// For one review. The API server answers in milliseconds; a person waits no longer than this for a page.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Reviews at a time. Strangers with random tokens must not become a load that the API server notices.
const AT_ONCE: usize = 32;

/// An answer repeats the token and lists groups; directories give a person some hundreds of them.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Who asks, in the API server's words.
pub struct Caller {
    pub token: TokenDigest,
    pub user: String,
    groups: Option<Vec<String>>,
    uid: Option<String>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

/// Why there is no answer. Never the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReviewError {
    #[error("the API server cannot be reached")]
    Unreachable,
    #[error("the API server did not answer within {} s", MAX_WAIT.as_secs())]
    TimedOut,
    #[error("Fencepost's ServiceAccount may not create {0}")]
    NotGranted(&'static str),
    #[error("the API server answered a review with status {0}")]
    Refused(u16),
    #[error("the API server's answer to a review cannot be read")]
    Unreadable,
}

impl ReviewError {
    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NotGranted(_) => {
                "Bind that ServiceAccount to the ClusterRole system:auth-delegator, as the chart does; no restart is needed."
            }
            Self::Refused(_) | Self::Unreadable => {
                "See the log of fencepost and of the API server."
            }
            Self::Unreachable | Self::TimedOut => {
                "Try again in a few seconds; see the API server's /readyz if this stays."
            }
        }
    }
}

/// A kind of review.
struct Kind {
    path: &'static str,
    resource: &'static str,
}

const TOKEN: Kind = Kind {
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    resource: "tokenreviews.authentication.k8s.io",
};
const ACCESS: Kind = Kind {
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    resource: "subjectaccessreviews.authorization.k8s.io",
};

/// Asks the API server.
pub struct Reviews {
    client: Client,
    permits: Semaphore,
}

impl Reviews {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            permits: Semaphore::new(AT_ONCE),
        }
    }

    /// Whose token it is; none: nobody's.
    pub async fn caller(&self, token: &Token) -> Result<Option<Caller>, ReviewError> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.reveal().to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let answer: TokenReview = self.ask(&TOKEN, &review).await?;
        let status = answer.status.ok_or(ReviewError::Unreadable)?;
        if status.authenticated != Some(true) {
            return Ok(None);
        }
        let user = status.user.unwrap_or_default();
        // Authenticated without a name: nothing could be asked about them.
        let name = user.username.filter(|name| !name.is_empty());
        Ok(name.map(|name| Caller {
            token: token.digest(),
            user: name,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
        }))
    }

    /// Whether the caller may.
    pub async fn allowed(&self, caller: &Caller, question: &Question) -> Result<bool, ReviewError> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(caller.user.clone()),
                groups: caller.groups.clone(),
                uid: caller.uid.clone(),
                extra: caller.extra.clone(),
                resource_attributes: question.resource_attributes(),
                non_resource_attributes: question.path_attributes(),
            },
            ..SubjectAccessReview::default()
        };
        let answer: SubjectAccessReview = self.ask(&ACCESS, &review).await?;
        let status = answer.status.ok_or(ReviewError::Unreadable)?;
        Ok(status.allowed && status.denied != Some(true))
    }

    async fn ask<T: Serialize + DeserializeOwned>(
        &self,
        kind: &Kind,
        review: &T,
    ) -> Result<T, ReviewError> {
        tokio::time::timeout(MAX_WAIT, self.send(kind, review))
            .await
            .unwrap_or(Err(ReviewError::TimedOut))
    }

    async fn send<T: Serialize + DeserializeOwned>(
        &self,
        kind: &Kind,
        review: &T,
    ) -> Result<T, ReviewError> {
        let _permit = self
            .permits
            .acquire()
            .await
            .map_err(|_| ReviewError::Unreachable)?;
        let body = serde_json::to_vec(review).map_err(|_| ReviewError::Unreadable)?;
        let request = Request::post(kind.path)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(Body::from(body))
            .map_err(|_| ReviewError::Unreadable)?;
        let response = self
            .client
            .send(request)
            .await
            .map_err(|_| ReviewError::Unreachable)?;
        match response.status() {
            status if status.is_success() => {}
            StatusCode::FORBIDDEN => return Err(ReviewError::NotGranted(kind.resource)),
            status => return Err(ReviewError::Refused(status.as_u16())),
        }
        let body = axum::body::Body::new(response.into_body());
        let bytes = axum::body::to_bytes(body, MAX_ANSWER_BYTES)
            .await
            .map_err(|_| ReviewError::Unreadable)?;
        serde_json::from_slice(&bytes).map_err(|_| ReviewError::Unreadable)
    }
}

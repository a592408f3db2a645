//! What the API server said, remembered for some seconds.
//!
//! In: tokens and questions. Out: callers and decisions, or the refusal to give. A right that was withdrawn ends when the
//! entries about it do. A failure to ask is remembered by nobody and never means yes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use kube::Client;
use moka::{Expiry, future::Cache};

use super::{
    question::Question,
    review::{Caller, ReviewError, Reviews},
    rule::Right,
    token::{Token, TokenDigest},
};
use crate::api::ApiError;

/// How long a token or a decision holds: as long as a withdrawn one may still be used. kube-apiserver's own webhooks keep
/// theirs 10 s and more.
const HOLDS: Duration = Duration::from_secs(10);
/// How long a refused token is remembered. A token that is valid only now must not be turned away for long.
const REFUSED_HOLDS: Duration = Duration::from_secs(2);
/// Tokens remembered: more people and scrapers than a cluster has; about 1 KiB each.
const MAX_TOKENS: u64 = 4096;
/// Decisions remembered: some for each token.
const MAX_DECISIONS: u64 = 16_384;
/// Questions of one request asked at a time; there is one for each watched namespace.
const AT_ONCE: usize = 8;
/// Between two lines of the log about the same trouble: every request has it.
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);

/// Access by `TokenReview` and `SubjectAccessReview`. Clones share what is remembered.
#[derive(Clone)]
pub struct KubernetesAccess(Arc<Inner>);

struct Inner {
    reviews: Reviews,
    /// Where a right at the operator's scope must hold. Never empty; none stands for all namespaces.
    scope: Vec<Option<Arc<str>>>,
    callers: Cache<TokenDigest, Option<Arc<Caller>>>,
    decisions: Cache<(TokenDigest, Question), bool>,
    complained: Mutex<Option<Instant>>,
}

struct Lifetime;

impl Expiry<TokenDigest, Option<Arc<Caller>>> for Lifetime {
    fn expire_after_create(
        &self,
        _: &TokenDigest,
        caller: &Option<Arc<Caller>>,
        _: Instant,
    ) -> Option<Duration> {
        Some(if caller.is_some() {
            HOLDS
        } else {
            REFUSED_HOLDS
        })
    }
}

impl KubernetesAccess {
    /// `namespaces`: those that the operator watches; empty: the whole cluster.
    pub fn new(client: Client, namespaces: Vec<String>) -> Self {
        let mut scope: Vec<Option<Arc<str>>> = namespaces
            .into_iter()
            .map(|namespace| Some(namespace.into()))
            .collect();
        if scope.is_empty() {
            scope.push(None);
        }
        Self(Arc::new(Inner {
            reviews: Reviews::new(client),
            scope,
            callers: Cache::builder()
                .max_capacity(MAX_TOKENS)
                .expire_after(Lifetime)
                .build(),
            decisions: Cache::builder()
                .max_capacity(MAX_DECISIONS)
                .time_to_live(HOLDS)
                .build(),
            complained: Mutex::new(None),
        }))
    }

    /// Whose token it is; none: nobody's. Requests that come together ask once.
    pub(super) async fn caller(&self, token: &Token) -> Result<Option<Arc<Caller>>, ApiError> {
        let asked = async {
            let caller = self.0.reviews.caller(token).await?;
            Ok::<_, ReviewError>(caller.map(Arc::new))
        };
        let answer = self.0.callers.try_get_with(token.digest(), asked).await;
        answer.map_err(|error| self.undecided(*error))
    }

    /// A right at the operator's scope.
    pub(super) fn at_scope(&self, right: Right) -> Vec<Question> {
        let scope = self.0.scope.iter().cloned();
        scope
            .map(|namespace| Question::Resource { right, namespace })
            .collect()
    }

    /// Refuses unless the caller may do all of it; the refusal names the first that they may not.
    pub(super) async fn demand(
        &self,
        caller: &Arc<Caller>,
        questions: Vec<Question>,
    ) -> Result<(), ApiError> {
        let mut answers = stream::iter(questions)
            .map(|question| {
                let (access, caller) = (self.clone(), Arc::clone(caller));
                async move {
                    let allowed = access.allowed(&caller, &question).await?;
                    Ok::<_, ApiError>((question, allowed))
                }
            })
            .buffered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            let (question, allowed) = answer?;
            if !allowed {
                return Err(ApiError::forbidden(
                    &caller.user,
                    &question.to_string(),
                    &question.grant(&caller.user),
                    question.object(),
                ));
            }
        }
        Ok(())
    }

    async fn allowed(&self, caller: &Caller, question: &Question) -> Result<bool, ApiError> {
        let answer = self
            .0
            .decisions
            .try_get_with(
                (caller.token, question.clone()),
                self.0.reviews.allowed(caller, question),
            )
            .await;
        answer.map_err(|error| self.undecided(*error))
    }

    /// The refusal while nobody can be asked.
    fn undecided(&self, error: ReviewError) -> ApiError {
        let now = Instant::now();
        let mut complained = self
            .0
            .complained
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if complained.is_none_or(|at| now.duration_since(at) >= COMPLAIN_EVERY) {
            *complained = Some(now);
            tracing::error!(
                %error,
                "requests are refused because nobody can say who may ask; {}",
                error.remedy()
            );
        }
        ApiError::access_undecided(&format!("{error}. {}", error.remedy()))
    }
}

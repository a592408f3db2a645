//! One read: issue, ask the server, settle. Exactly one receipt whatever happens.
//!
//! No transaction is open while the server is asked. When the session ends first, its end settles the
//! read; when the database is away, the answer waits in memory until it can be settled.

use std::{sync::Arc, time::Duration};

use fencepost_ledger::{
    Generation, IssueRefusal, RequestId, ResourceId, SessionGeneration, Trigger, Verdict,
    backoff::Backoff,
};
use fencepost_mcp::{RequestError, Session};
use fencepost_store::{AnswerBody, IssueError, IssueRead, ReadAnswer, Store, StoreError};
use uuid::Uuid;

use super::{
    answer::{self, ContentRules, Evaluated},
    limits::ReadPermit,
    table::Slot,
};
use crate::metrics::Metrics;

/// Between tries to settle an answer while the database is away.
const SETTLE_AGAIN: Backoff = Backoff {
    first: Duration::from_millis(100),
    cap: Duration::from_secs(5),
};

/// Reason of a receipt whose answer the ledger would not take.
const LEDGER_REFUSED: &str = "LEDGER_REFUSED";

/// A read whose turn has come.
pub struct ReadJob {
    pub slot: Slot,
    pub resource: ResourceId,
    pub generation: Generation,
    pub session: SessionGeneration,
    pub uri: Arc<str>,
    pub trigger: Trigger,
    pub rules: Arc<ContentRules>,
    pub server_version: Arc<str>,
    pub permit: ReadPermit,
}

/// What came of it.
pub struct ReadDone {
    pub slot: Slot,
    pub resource: ResourceId,
    pub trigger: Trigger,
    pub result: ReadResult,
}

pub enum ReadResult {
    Settled {
        verdict: Verdict,
        reason: Option<&'static str>,
        ttl: Option<Duration>,
        /// The server asked to be left alone for so long.
        retry_after: Option<Duration>,
        /// The credential was refused: the session has to be opened anew with a fresh one.
        unauthorized: bool,
    },
    NotIssued(IssueRefusal),
    /// The database could not be asked; nothing was dispatched.
    StoreAway,
}

/// Runs one read to its receipt.
pub async fn run(store: &Store, metrics: &Metrics, client: &Session, job: ReadJob) -> ReadDone {
    let done = |result| ReadDone {
        slot: job.slot,
        resource: job.resource,
        trigger: job.trigger,
        result,
    };
    let request = RequestId::new(Uuid::now_v7());
    let issued = match store
        .issue_read(IssueRead {
            request,
            resource: job.resource,
            generation: job.generation,
            session: job.session,
            trigger: job.trigger,
        })
        .await
    {
        Ok(issued) => issued,
        Err(IssueError::Refused(refusal)) => return done(ReadResult::NotIssued(refusal)),
        Err(IssueError::Store(error)) => {
            count_fence(metrics, &error);
            tracing::warn!(category = error.category(), "a read was not issued");
            return done(ReadResult::StoreAway);
        }
    };
    let asked = client.read(&job.uri).await;
    drop(job.permit);
    let (mut ttl, mut retry_after, mut unauthorized) = (None, None, false);
    let Evaluated {
        body,
        reason,
        detail,
    } = match asked {
        Ok(content) => {
            ttl = content.ttl;
            answer::content(content, &job.rules, &job.server_version)
        }
        Err(error) => {
            match &error {
                RequestError::RateLimited { retry_after: after } => {
                    retry_after = Some(after.unwrap_or(Duration::from_secs(1)));
                }
                RequestError::Unauthorized { .. } => unauthorized = true,
                _ => {}
            }
            answer::failure(&error)
        }
    };
    let answer = ReadAnswer {
        request,
        resource: job.resource,
        ordinal: issued.ordinal,
        body,
        reason: reason.map(str::to_owned),
        detail,
    };
    let verdict = settle(store, metrics, answer).await;
    done(ReadResult::Settled {
        verdict,
        reason,
        ttl,
        retry_after,
        unauthorized,
    })
}

/// Settles the answer, however long the database is away: giving up would lose a receipt, and the
/// session's end, which cancels this, writes it instead. An answer that the ledger refuses for what it
/// is settles as failed, so that its read has a receipt all the same.
async fn settle(store: &Store, metrics: &Metrics, mut answer: ReadAnswer) -> Verdict {
    let mut attempt = 0;
    loop {
        let error = match store.accept_resource_version(answer.clone()).await {
            Ok(settled) => return settled.verdict,
            Err(error) => error,
        };
        count_fence(metrics, &error);
        attempt += 1;
        tracing::warn!(
            category = error.category(),
            attempt,
            "an answer was not settled"
        );
        if error.may_pass() {
            tokio::time::sleep(SETTLE_AGAIN.delay(attempt, rand::random())).await;
            continue;
        }
        if answer.reason.as_deref() == Some(LEDGER_REFUSED) {
            return Verdict::Failed;
        }
        answer.body = AnswerBody::Failed;
        answer.reason = Some(LEDGER_REFUSED.to_owned());
        answer.detail = Some(error.to_string());
    }
}

/// A fence that the database had to hold means that something before it did not: an invariant's violation.
fn count_fence(metrics: &Metrics, error: &StoreError) {
    if let StoreError::Fence { code, .. } = error {
        metrics.invariant_violation(match code.as_str() {
            "FP001" => "counter_fell",
            "FP002" => "closed_generation_changed",
            "FP003" => "closed_generation_reopened",
            "FP004" => "receipt_changed",
            _ => "constraint",
        });
    }
}

//! The acceptance point: the only place where a version, a watermark or a presence changes.
//!
//! In come answers of servers, out go verdicts. In one short transaction a batch is locked, judged and
//! written by `accept.sql`: receipt, watermark, version, content, outbox row. The verdict is made in
//! SQL, under the locks; Rust only carries it. What must hold: no answer counts twice, none changes
//! anything once a later read has settled or its generation, session or permission is gone; a
//! version and its announcement are committed together or not at all.

use fencepost_ledger::{Digest, Ordinal, Outcome, RequestId, ResourceId, StaleReason, Verdict};
use sqlx::{PgConnection, PgPool};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    Store, advisory,
    batch::Flush,
    error::{StoreError, Tries},
    row::{column, digest, word},
    writes::Writer,
};

/// What became of an issued read, as the engine saw it.
#[derive(Debug, Clone)]
pub struct ReadAnswer {
    pub request: RequestId,
    pub resource: ResourceId,
    pub ordinal: Ordinal,
    pub body: AnswerBody,
    /// A stable upper-case word, for answers that are no content.
    pub reason: Option<String>,
    /// A sentence for people; no secrets.
    pub detail: Option<String>,
}

/// What the server's answer amounts to.
#[derive(Clone)]
pub enum AnswerBody {
    Content {
        digest: Digest,
        mime_type: Option<String>,
        /// Bytes of the content, also when `bytes` is not given.
        size: u64,
        /// What is stored if the watch wants content stored.
        bytes: Option<Vec<u8>>,
        /// name/version as the server calls itself.
        server_version: String,
    },
    NotFound,
    Refused,
    Failed,
}

/// Content of a subject is no business of a log.
impl std::fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Content { digest, size, .. } => write!(f, "Content({digest}, {size} bytes)"),
            Self::NotFound => f.write_str("NotFound"),
            Self::Refused => f.write_str("Refused"),
            Self::Failed => f.write_str("Failed"),
        }
    }
}

/// The acceptance point's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    pub verdict: Verdict,
    /// What was current before.
    pub previous: Option<Digest>,
    /// With `AlreadySettled`: the outcome and reason that stand.
    pub receipt: Option<(Outcome, Option<String>)>,
}

impl Store {
    /// Settles an issued read.
    pub async fn accept_resource_version(&self, answer: ReadAnswer) -> Result<Settled, StoreError> {
        self.inner.answers.submit(answer).await
    }
}

pub(crate) struct AcceptFlush {
    pub(crate) pool: PgPool,
    pub(crate) hint: mpsc::Sender<()>,
}

impl Flush for AcceptFlush {
    type Item = ReadAnswer;
    type Answer = Settled;
    type Key = ResourceId;

    const WRITER: Writer = Writer::Answers;

    fn key(answer: &ReadAnswer) -> ResourceId {
        answer.resource
    }

    async fn flush(&self, answers: &[ReadAnswer]) -> Result<Vec<Settled>, StoreError> {
        let columns = Columns::of(answers);
        let mut tries = Tries::default();
        // Whether an earlier try may have been committed although its reply never came.
        let mut unknown = false;
        loop {
            let error = match self.once(&columns, unknown).await {
                Ok(settled) => {
                    if settled.iter().any(|s| s.verdict == Verdict::Accepted) {
                        // Full: readers will be woken anyway.
                        let _ = self.hint.try_send(());
                    }
                    return Ok(settled);
                }
                Err(Failure::Before(error)) => error,
                Err(Failure::AtCommit(error)) => {
                    unknown = true;
                    error
                }
            };
            let repeat = if error.is_lost_connection() {
                tries.wait().await
            } else {
                tries.again(&error).await
            };
            if !repeat {
                return Err(error);
            }
        }
    }
}

/// Where a try failed: before the commit nothing is written, at the commit nobody knows.
enum Failure {
    Before(StoreError),
    AtCommit(StoreError),
}

impl<E: Into<StoreError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Before(error.into())
    }
}

impl AcceptFlush {
    async fn once(&self, columns: &Columns<'_>, unknown: bool) -> Result<Vec<Settled>, Failure> {
        let mut tx = self.pool.begin().await?;
        lock(&mut tx, columns).await?;
        let rows = judge(&mut tx, columns).await?;
        let settled = rows
            .iter()
            .zip(&columns.digests)
            .map(|(row, digest)| row.settled(*digest, unknown))
            .collect::<Result<Vec<_>, _>>()?;
        tx.commit()
            .await
            .map_err(|error| Failure::AtCommit(error.into()))?;
        Ok(settled)
    }
}

/// The batch, turned on its side.
struct Columns<'a> {
    requests: Vec<Uuid>,
    resources: Vec<Uuid>,
    ordinals: Vec<i64>,
    kinds: Vec<&'static str>,
    digests: Vec<Option<&'a [u8]>>,
    mime_types: Vec<Option<&'a str>>,
    sizes: Vec<Option<i64>>,
    bytes: Vec<Option<&'a [u8]>>,
    server_versions: Vec<Option<&'a str>>,
    reasons: Vec<Option<&'a str>>,
    details: Vec<Option<&'a str>>,
    /// Ids of the events, should there be any; ordered in time, which is kind to their index.
    events: Vec<Uuid>,
}

impl<'a> Columns<'a> {
    fn of(answers: &'a [ReadAnswer]) -> Self {
        let content = |answer: &'a ReadAnswer| match &answer.body {
            AnswerBody::Content {
                digest,
                mime_type,
                size,
                bytes,
                server_version,
            } => Some((digest, mime_type, *size, bytes, server_version)),
            AnswerBody::NotFound | AnswerBody::Refused | AnswerBody::Failed => None,
        };
        let each = || answers.iter().map(content);
        Self {
            requests: answers.iter().map(|a| a.request.get()).collect(),
            resources: answers.iter().map(|a| a.resource.get()).collect(),
            ordinals: answers.iter().map(|a| column(a.ordinal.get())).collect(),
            kinds: answers
                .iter()
                .map(|a| match a.body {
                    AnswerBody::Content { .. } => "content",
                    AnswerBody::NotFound => "not_found",
                    AnswerBody::Refused => "refused",
                    AnswerBody::Failed => "failed",
                })
                .collect(),
            digests: each()
                .map(|c| c.map(|(digest, ..)| digest.as_bytes().as_slice()))
                .collect(),
            mime_types: each().map(|c| c.and_then(|c| c.1.as_deref())).collect(),
            sizes: each().map(|c| c.map(|c| column(c.2))).collect(),
            bytes: each().map(|c| c.and_then(|c| c.3.as_deref())).collect(),
            server_versions: each().map(|c| c.map(|c| c.4.as_str())).collect(),
            reasons: answers.iter().map(|a| a.reason.as_deref()).collect(),
            details: answers.iter().map(|a| a.detail.as_deref()).collect(),
            events: answers.iter().map(|_| Uuid::now_v7()).collect(),
        }
    }
}

/// Locks the resources in the order of their ids, then, if any content differs from what is current,
/// the outbox. The row locks return the newest digests, so nothing to announce is overlooked.
async fn lock(connection: &mut PgConnection, columns: &Columns<'_>) -> Result<(), sqlx::Error> {
    let newest: Vec<(Uuid, Option<Vec<u8>>)> = sqlx::query_as(
        "select res.id, res.digest from resource res
         where res.id = any($1) order by res.id for no key update",
    )
    .bind(&columns.resources)
    .fetch_all(&mut *connection)
    .await?;
    let newest: std::collections::HashMap<_, _> = newest.into_iter().collect();
    let announces = columns
        .resources
        .iter()
        .zip(&columns.digests)
        .any(|(id, digest)| {
            digest.is_some_and(|digest| {
                newest
                    .get(id)
                    .is_some_and(|current| current.as_deref() != Some(digest))
            })
        });
    if announces {
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(advisory::OUTBOX)
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn judge(
    connection: &mut PgConnection,
    columns: &Columns<'_>,
) -> Result<Vec<Judged>, sqlx::Error> {
    sqlx::query_as(include_str!("accept.sql"))
        .bind(&columns.requests)
        .bind(&columns.resources)
        .bind(&columns.ordinals)
        .bind(&columns.kinds)
        .bind(&columns.digests)
        .bind(&columns.mime_types)
        .bind(&columns.sizes)
        .bind(&columns.bytes)
        .bind(&columns.server_versions)
        .bind(&columns.reasons)
        .bind(&columns.details)
        .bind(&columns.events)
        .fetch_all(connection)
        .await
}

#[derive(sqlx::FromRow)]
struct Judged {
    verdict: String,
    previous_digest: Option<Vec<u8>>,
    stands: Option<String>,
    stands_reason: Option<String>,
    stands_digest: Option<Vec<u8>>,
    stood_previous_digest: Option<Vec<u8>>,
    held: bool,
}

impl Judged {
    /// `given` is the digest of the answer. `unknown`: this read may have been settled by a try
    /// whose commit was not confirmed; a receipt with the same digest is then this answer's own.
    fn settled(&self, given: Option<&[u8]>, unknown: bool) -> Result<Settled, StoreError> {
        if !self.held {
            let message = "a verdict could not be written; its batch was not";
            return Err(StoreError::fence("VERDICT", message));
        }
        let previous = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(digest).transpose();
        if self.verdict != "ALREADY_SETTLED" {
            return Ok(Settled {
                verdict: verdict(&self.verdict)?,
                previous: previous(&self.previous_digest)?,
                receipt: None,
            });
        }
        let outcome: Outcome = word(self.stands.as_deref().unwrap_or_default())?;
        if unknown && self.stands_digest.as_deref() == given {
            let own = match (outcome, self.stands_reason.as_deref()) {
                (Outcome::Stale, Some(reason)) => verdict(reason)?,
                _ => verdict(outcome.as_str())?,
            };
            let before = match own {
                Verdict::Accepted => &self.stood_previous_digest,
                _ => &self.previous_digest,
            };
            return Ok(Settled {
                verdict: own,
                previous: previous(before)?,
                receipt: None,
            });
        }
        Ok(Settled {
            verdict: Verdict::AlreadySettled,
            previous: previous(&self.previous_digest)?,
            receipt: Some((outcome, self.stands_reason.clone())),
        })
    }
}

fn verdict(text: &str) -> Result<Verdict, StoreError> {
    Ok(match text {
        "NEVER_ISSUED" => Verdict::NeverIssued,
        "accepted" => Verdict::Accepted,
        "unchanged" => Verdict::Unchanged,
        "not_found" => Verdict::NotFound,
        "refused" => Verdict::Refused,
        "failed" => Verdict::Failed,
        "STALE_EPOCH" => Verdict::Stale(StaleReason::StaleEpoch),
        "STALE_GENERATION" => Verdict::Stale(StaleReason::StaleGeneration),
        "STALE_AFTER_CLOSE" => Verdict::Stale(StaleReason::StaleAfterClose),
        "STALE_ORDINAL" => Verdict::Stale(StaleReason::StaleOrdinal),
        other => return Err(StoreError::corrupt(format!("the verdict {other:?}"))),
    })
}

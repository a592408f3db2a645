//! Issuing reads: an ordinal and a row before anything goes to a server. No row, no read.
//!
//! In comes who wants to read what under which generation and session, out goes the ordinal or the
//! fence that stands against it. An ordinal is never given twice. The request id makes a call
//! repeatable: the same one again gets the ordinal that it got.

use chrono::{DateTime, Utc};
use fencepost_ledger::{
    Epoch, Generation, IssueRefusal, Ordinal, RequestId, ResourceId, SessionGeneration, Trigger,
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    Store,
    batch::Flush,
    error::{StoreError, Tries},
    row::{column, counter},
    writes::Writer,
};

/// A read that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct IssueRead {
    /// New for each read, drawn by the caller.
    pub request: RequestId,
    pub resource: ResourceId,
    pub generation: Generation,
    pub session: SessionGeneration,
    pub trigger: Trigger,
}

/// A read that may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssuedRead {
    pub ordinal: Ordinal,
    pub epoch: Epoch,
    /// By the database's clock.
    pub issued_at: DateTime<Utc>,
}

/// Why no read may go out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IssueError {
    #[error(transparent)]
    Refused(#[from] IssueRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Raises the resource's last issued ordinal and stores the read.
    pub async fn issue_read(&self, read: IssueRead) -> Result<IssuedRead, IssueError> {
        self.inner.issues.submit(read).await?
    }
}

pub(crate) struct IssueFlush {
    pub(crate) pool: PgPool,
}

impl Flush for IssueFlush {
    type Item = IssueRead;
    type Answer = Result<IssuedRead, IssueError>;
    type Key = ResourceId;

    const WRITER: Writer = Writer::Issues;

    fn key(read: &IssueRead) -> ResourceId {
        read.resource
    }

    async fn flush(&self, reads: &[IssueRead]) -> Result<Vec<Self::Answer>, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.once(reads).await {
                // The request ids make it safe to repeat also what may have been committed.
                Err(error) if tries.again(&error).await => {}
                Err(error) if error.is_lost_connection() && tries.wait().await => {}
                done => return done,
            }
        }
    }
}

#[derive(sqlx::FromRow)]
struct IssueRow {
    /// Place in the batch, from 1.
    n: i64,
    ordinal: Option<i64>,
    epoch: Option<i64>,
    issued_at: Option<DateTime<Utc>>,
    verdict: String,
}

impl IssueFlush {
    async fn once(
        &self,
        reads: &[IssueRead],
    ) -> Result<Vec<Result<IssuedRead, IssueError>>, StoreError> {
        let requests: Vec<Uuid> = reads.iter().map(|r| r.request.get()).collect();
        let resources: Vec<Uuid> = reads.iter().map(|r| r.resource.get()).collect();
        let generations: Vec<i64> = reads.iter().map(|r| column(r.generation.get())).collect();
        let sessions: Vec<i64> = reads.iter().map(|r| column(r.session.get())).collect();
        let triggers: Vec<&str> = reads.iter().map(|r| r.trigger.as_str()).collect();
        let rows: Vec<IssueRow> = sqlx::query_as(include_str!("issue.sql"))
            .bind(requests)
            .bind(resources)
            .bind(generations)
            .bind(sessions)
            .bind(triggers)
            .fetch_all(&self.pool)
            .await?;
        // A resource that is not there has no generation at all.
        let unknown = || Err(IssueError::Refused(IssueRefusal::OtherGeneration));
        let mut answers: Vec<_> = reads.iter().map(|_| unknown()).collect();
        for row in rows {
            let place = usize::try_from(row.n - 1).ok();
            let answer = place
                .and_then(|place| answers.get_mut(place))
                .ok_or_else(|| StoreError::corrupt(format!("the place {}", row.n)))?;
            if answer.is_err() {
                *answer = row.answer()?;
            }
        }
        Ok(answers)
    }
}

impl IssueRow {
    fn answer(self) -> Result<Result<IssuedRead, IssueError>, StoreError> {
        let refusal = match (
            self.verdict.as_str(),
            self.ordinal,
            self.epoch,
            self.issued_at,
        ) {
            ("ISSUED" | "ISSUED_BEFORE", Some(ordinal), Some(epoch), Some(issued_at)) => {
                return Ok(Ok(IssuedRead {
                    ordinal: Ordinal::new(counter(ordinal)?),
                    epoch: Epoch::new(counter(epoch)?),
                    issued_at,
                }));
            }
            ("REUSED", ..) => {
                let message = "the request id was issued for another read";
                return Ok(Err(StoreError::fence("REQUEST_REUSED", message).into()));
            }
            ("REVOKED", ..) => IssueRefusal::Revoked,
            ("OTHER_GENERATION", ..) => IssueRefusal::OtherGeneration,
            ("OTHER_SESSION", ..) => IssueRefusal::OtherSession,
            ("NOT_ACTIVE", ..) => IssueRefusal::NotActive,
            (other, ..) => return Err(StoreError::corrupt(format!("the verdict {other:?}"))),
        };
        Ok(Err(refusal.into()))
    }
}

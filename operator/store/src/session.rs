//! Sessions: one connection incarnation of (server, subject), from its receipt to its end.
//!
//! A session's end closes its generations and gives up its reads in flight, each with a receipt: no
//! read is left without one.

use fencepost_ledger::SessionGeneration;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    Store,
    error::{StoreError, Tries},
    row::{column, counter},
};

/// Which session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub server: Uuid,
    pub subject: Uuid,
    pub generation: SessionGeneration,
}

/// The capability receipt: what was negotiated.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionReceipt {
    /// `legacy` or `modern`.
    pub era: String,
    pub protocol_version: String,
    /// name/version as the server calls itself.
    pub server_version: String,
    pub receipt: Value,
    pub digest: [u8; 32],
}

/// What a session's end came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionEnd {
    /// Generations that were closed.
    pub closed: u64,
    /// Reads in flight that were given up.
    pub given_up: u64,
}

impl Store {
    /// Stores the receipt of a session that is up. False: the lease is another's by now, and the
    /// connection has to go.
    pub async fn session_connected(
        &self,
        s: &SessionKey,
        receipt: &SessionReceipt,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "update session x
             set era = $5, protocol_version = $6, server_version = $7, receipt = $8,
                 receipt_digest = $9, connected_at = now()
             from session_lease l
             where x.server_uid = $1 and x.subject_uid = $2 and x.generation = $3 and x.closed_at is null
                 and l.server_uid = $1 and l.subject_uid = $2 and l.session_generation = $3
                 and l.owner = $4",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(column(s.generation.get()))
        .bind(self.replica())
        .bind(&receipt.era)
        .bind(&receipt.protocol_version)
        .bind(&receipt.server_version)
        .bind(&receipt.receipt)
        .bind(receipt.digest.as_slice())
        .execute(self.pool())
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Closes all that the session opened, and lets its lease go if it is still this replica's.
    pub async fn end_session(
        &self,
        s: &SessionKey,
        reason: &str,
    ) -> Result<SessionEnd, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.try_end(s, reason).await {
                Err(error) if tries.again(&error).await => {}
                done => return done,
            }
        }
    }

    async fn try_end(&self, s: &SessionKey, reason: &str) -> Result<SessionEnd, StoreError> {
        let mut tx = self.pool().begin().await?;
        sqlx::query(
            "update session_lease set expires_at = clock_timestamp()
             where server_uid = $1 and subject_uid = $2 and session_generation = $3 and owner = $4",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(column(s.generation.get()))
        .bind(self.replica())
        .execute(&mut *tx)
        .await?;
        let end = close_sessions(&mut tx, s, reason).await?;
        tx.commit().await?;
        Ok(end)
    }
}

/// Closes the sessions of (server, subject) up to and with `s`: their resources, then their reads.
/// In that order: under the resource's lock nothing is issued any more, so none is overlooked.
pub(crate) async fn close_sessions(
    connection: &mut PgConnection,
    s: &SessionKey,
    reason: &str,
) -> Result<SessionEnd, StoreError> {
    let generation = column(s.generation.get());
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "select res.id from resource res
         where res.server_uid = $1 and res.subject_uid = $2 and res.session_generation <= $3
             and (res.subscription in ('SUBSCRIBING', 'ACTIVE', 'UNSUBSCRIBING', 'UNSUBSCRIBE_UNKNOWN')
                 or exists (select from read r where r.resource_id = res.id and r.outcome is null))
         order by res.id
         for no key update",
    )
    .bind(s.server)
    .bind(s.subject)
    .bind(generation)
    .fetch_all(&mut *connection)
    .await?;
    let closed: i64 = sqlx::query_scalar(
        "with old as materialized (
             select o.id, o.subscription in ('SUBSCRIBING', 'ACTIVE') as open
             from resource o
             where o.id = any($1) and o.session_generation <= $2
                 and o.subscription in ('SUBSCRIBING', 'ACTIVE', 'UNSUBSCRIBING', 'UNSUBSCRIBE_UNKNOWN')
         ), closed as (
             update resource res
             set subscription = 'CLOSED', closed_at = now(),
                 close_ordinal = coalesce(res.close_ordinal, res.last_issued_ordinal),
                 close_epoch = res.close_epoch + case when old.open then 1 else 0 end
             from old
             where res.id = old.id
             returning res.id, res.generation, old.open
         ), marked as (
             insert into mark (resource_id, at, kind, generation, detail)
             select c.id, now(), 'closed', c.generation, $3 from closed c where c.open
         )
         select count(*) from closed",
    )
    .bind(&ids)
    .bind(generation)
    .bind(reason)
    .fetch_one(&mut *connection)
    .await?;
    let given_up = sqlx::query(
        "update read
         set outcome = 'stale', reason = 'STALE_AFTER_CLOSE', finished_at = now(),
             detail = 'given up: its session is gone'
         where resource_id = any($1) and outcome is null and session_generation <= $2",
    )
    .bind(&ids)
    .bind(generation)
    .execute(&mut *connection)
    .await?
    .rows_affected();
    sqlx::query(
        "update session set closed_at = now(), close_reason = $4
         where server_uid = $1 and subject_uid = $2 and generation <= $3 and closed_at is null",
    )
    .bind(s.server)
    .bind(s.subject)
    .bind(generation)
    .bind(reason)
    .execute(connection)
    .await?;
    Ok(SessionEnd {
        closed: counter(closed)?,
        given_up,
    })
}

//! Leases of (server, subject): which replica talks to a server on whose behalf.
//!
//! A lease saves work; what fences is its epoch, the session generation. Whoever takes a lease raises
//! it and closes, in the same transaction, all that was opened under an older one: an owner that was
//! paused and wakes up finds its reads settled and its resources closed. The database's clock writes
//! the expiry and judges it.

use std::time::Duration;

use fencepost_ledger::SessionGeneration;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    Store,
    error::{StoreError, Tries},
    row::{column, counter, interval},
    session::{SessionKey, close_sessions},
    writes::Writer,
};

/// How long after a lease ran out it counts as abandoned: whoever wants the pair has taken it by then.
const ABANDONED_AFTER: Duration = Duration::from_secs(5);
/// Leases of one transaction: their resources are locked until it ends.
const ABANDONED_AT_ONCE: i64 = 50;

impl Store {
    /// Takes the lease if it is free, expired or this replica's own: a new session generation. None:
    /// another replica holds it, or the ledger does not have both objects: not published yet, or the server is
    /// gone. A subject whose permission is withdrawn is fenced by its epoch, not here.
    pub async fn acquire_lease(
        &self,
        server: Uuid,
        subject: Uuid,
        ttl: Duration,
    ) -> Result<Option<SessionGeneration>, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.try_acquire(server, subject, ttl).await {
                Err(error) if tries.again(&error).await => {}
                done => {
                    self.inner.writes.observe(Writer::Leases, &done);
                    return done;
                }
            }
        }
    }

    async fn try_acquire(
        &self,
        server: Uuid,
        subject: Uuid,
        ttl: Duration,
    ) -> Result<Option<SessionGeneration>, StoreError> {
        let mut tx = self.pool().begin().await?;
        let taken: Option<i64> = sqlx::query_scalar(
            "insert into session_lease as l (server_uid, subject_uid, owner, session_generation, expires_at)
             select s.uid, u.uid, $3, 1, clock_timestamp() + $4 from server s, subject u
             where s.uid = $1 and s.deleted_at is null and u.uid = $2
             on conflict (server_uid, subject_uid) do update
             set owner = excluded.owner, session_generation = l.session_generation + 1,
                 expires_at = clock_timestamp() + $4
             where l.owner = excluded.owner or l.expires_at <= clock_timestamp()
             returning session_generation",
        )
        .bind(server)
        .bind(subject)
        .bind(self.replica())
        .bind(interval(ttl))
        .fetch_optional(&mut *tx)
        .await?;
        let Some(taken) = taken else {
            return Ok(None);
        };
        let generation = SessionGeneration::new(counter(taken)?);
        let before = SessionKey {
            server,
            subject,
            generation: SessionGeneration::new(generation.get().saturating_sub(1)),
        };
        close_sessions(&mut tx, &before, "the lease was taken for a new session").await?;
        open_session(&mut tx, server, subject, generation, self.replica()).await?;
        tx.commit().await?;
        Ok(Some(generation))
    }

    /// Keeps leases; in order, whether each is still this replica's under that generation. One that
    /// has expired is renewed all the same as long as nobody took it.
    pub async fn renew_leases(
        &self,
        leases: &[(Uuid, Uuid, SessionGeneration)],
        ttl: Duration,
    ) -> Result<Vec<bool>, StoreError> {
        let servers: Vec<Uuid> = leases.iter().map(|l| l.0).collect();
        let subjects: Vec<Uuid> = leases.iter().map(|l| l.1).collect();
        let generations: Vec<i64> = leases.iter().map(|l| column(l.2.get())).collect();
        let mut tries = Tries::default();
        loop {
            let done = sqlx::query_scalar(
                "with asked as (
                     select a.server_uid, a.subject_uid, a.generation, a.n
                     from unnest($1::uuid[], $2::uuid[], $3::bigint[])
                         with ordinality as a (server_uid, subject_uid, generation, n)
                 ), locked as materialized (
                     select l.server_uid, l.subject_uid from session_lease l
                     where (l.server_uid, l.subject_uid) in (select a.server_uid, a.subject_uid from asked a)
                     order by l.server_uid, l.subject_uid
                     for no key update
                 ), renewed as (
                     update session_lease l set expires_at = clock_timestamp() + $5
                     from asked a join locked using (server_uid, subject_uid)
                     where l.server_uid = a.server_uid and l.subject_uid = a.subject_uid
                         and l.session_generation = a.generation and l.owner = $4
                     returning a.n, l.subject_uid
                 ), used as (
                     -- A session is open, and its requests carry the credential. Once a minute is exact enough to look at.
                     update subject u set last_used_at = clock_timestamp()
                     where u.uid in (select subject_uid from renewed)
                         and (u.last_used_at is null or u.last_used_at < clock_timestamp() - interval '1 minute')
                 )
                 select renewed.n is not null from asked a left join renewed using (n) order by n",
            )
            .bind(&servers)
            .bind(&subjects)
            .bind(&generations)
            .bind(self.replica())
            .bind(interval(ttl))
            .fetch_all(self.pool())
            .await
            .map_err(StoreError::from);
            match done {
                Err(error) if tries.again(&error).await => {}
                done => {
                    self.inner.writes.observe(Writer::Leases, &done);
                    return done;
                }
            }
        }
    }

    /// Closes what was left open under leases that ran out and that nobody took: their owner died, and no
    /// manifest asks for the pair any more. The generation rises, so that an owner which was only paused
    /// finds its lease gone. How many leases it was, at most [`ABANDONED_AT_ONCE`].
    pub async fn close_abandoned(&self) -> Result<u64, StoreError> {
        let mut tx = self.pool().begin().await?;
        let abandoned: Vec<(Uuid, Uuid, i64)> = sqlx::query_as(
            "with gone as (
                 select l.server_uid, l.subject_uid from session_lease l
                 where l.expires_at < clock_timestamp() - $1
                     and exists (select from session s
                                 where s.server_uid = l.server_uid and s.subject_uid = l.subject_uid
                                     and s.closed_at is null)
                 order by l.server_uid, l.subject_uid limit $2
                 for update skip locked
             )
             update session_lease l set session_generation = l.session_generation + 1
             from gone where l.server_uid = gone.server_uid and l.subject_uid = gone.subject_uid
             returning l.server_uid, l.subject_uid, l.session_generation",
        )
        .bind(interval(ABANDONED_AFTER))
        .bind(ABANDONED_AT_ONCE)
        .fetch_all(&mut *tx)
        .await?;
        for (server, subject, generation) in &abandoned {
            let last = SessionKey {
                server: *server,
                subject: *subject,
                generation: SessionGeneration::new(counter(*generation)?.saturating_sub(1)),
            };
            close_sessions(&mut tx, &last, "its owner is gone, and nothing asks for it").await?;
        }
        tx.commit().await?;
        Ok(abandoned.len() as u64)
    }

    /// Lets every lease go, whoever holds it. Only for a database with one user, whose former process
    /// cannot be alive any more.
    pub async fn release_all_leases(&self) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "update session_lease set expires_at = clock_timestamp()
             where expires_at > clock_timestamp()",
        )
        .execute(self.pool())
        .await?;
        Ok(done.rows_affected())
    }
}

async fn open_session(
    connection: &mut PgConnection,
    server: Uuid,
    subject: Uuid,
    generation: SessionGeneration,
    owner: Uuid,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into session (server_uid, subject_uid, generation, owner) values ($1, $2, $3, $4)",
    )
    .bind(server)
    .bind(subject)
    .bind(column(generation.get()))
    .bind(owner)
    .execute(connection)
    .await?;
    Ok(())
}

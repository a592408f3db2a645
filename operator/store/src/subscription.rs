//! Generations of watching a resource: opened, active, closing, closed.
//!
//! In come resources with the generation that the caller believes in, out goes for each whether the
//! step was taken. Every step is a compare-and-set on the newest row: what does not fit any more
//! answers no, and nothing is changed.

use fencepost_ledger::{Generation, Ordinal, ResourceId};
use uuid::Uuid;

use crate::{
    Store,
    error::{StoreError, Tries},
    resource::Mode,
    row::{column, counter},
    session::SessionKey,
};

impl Store {
    /// Opens the next generation of each resource in the session. None: it is open already, the
    /// permission is withdrawn, the session has ended, or the lease is not this session's any more.
    ///
    /// What not-found reads had shown is forgotten: a tombstone takes evidence of its own generation.
    pub async fn open_generations(
        &self,
        s: &SessionKey,
        ids: &[ResourceId],
    ) -> Result<Vec<Option<Generation>>, StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.get()).collect();
        let mut tries = Tries::default();
        let opened = loop {
            match self.try_open(s, &ids).await {
                Err(error) if tries.again(&error).await => {}
                done => break done?,
            }
        };
        opened
            .into_iter()
            .map(|generation| Ok(generation.map(counter).transpose()?.map(Generation::new)))
            .collect()
    }

    async fn try_open(&self, s: &SessionKey, ids: &[Uuid]) -> Result<Vec<Option<i64>>, StoreError> {
        let mut tx = self.pool().begin().await?;
        // Shared locks: a takeover, a session's end or a withdrawal waits for this to be visible and
        // then closes it; or it is visible to what follows.
        let lease = sqlx::query(
            "select l.owner from session_lease l
             where l.server_uid = $1 and l.subject_uid = $2 and l.session_generation = $3 and l.owner = $4
             for share",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(column(s.generation.get()))
        .bind(self.replica())
        .fetch_optional(&mut *tx)
        .await?;
        sqlx::query("select uid from subject where uid = $1 for share")
            .bind(s.subject)
            .execute(&mut *tx)
            .await?;
        let allowed: bool = sqlx::query_scalar(
            "select exists (select from subject where uid = $2 and not revoked)
                 and exists (select from session x where x.server_uid = $1 and x.subject_uid = $2
                     and x.generation = $3 and x.closed_at is null)",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(column(s.generation.get()))
        .fetch_one(&mut *tx)
        .await?;
        if lease.is_none() || !allowed {
            return Ok(vec![None; ids.len()]);
        }
        let opened = sqlx::query_scalar(
            "with locked as materialized (
                 select res.id from resource res where res.id = any($1)
                 order by res.id for no key update
             ), opened as (
                 update resource res
                 set generation = res.generation + 1, session_generation = $4,
                     subscription = 'SUBSCRIBING', close_ordinal = null, closed_at = null,
                     not_found_reads = 0, tombstone_since = null
                 from locked
                 where res.id = locked.id and res.server_uid = $2 and res.subject_uid = $3
                     and ((res.subscription in ('DISCOVERED', 'CLOSED') and res.session_generation <= $4)
                         or (res.subscription = 'UNSUBSCRIBE_UNKNOWN' and res.session_generation < $4))
                 returning res.id, res.generation
             ), marked as (
                 insert into mark (resource_id, at, kind, generation)
                 select o.id, now(), 'opened', o.generation from opened o
             )
             select o.generation
             from unnest($1::uuid[]) with ordinality as a (id, n)
             left join opened o on o.id = a.id
             order by a.n",
        )
        .bind(ids)
        .bind(s.server)
        .bind(s.subject)
        .bind(column(s.generation.get()))
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(opened)
    }

    /// SUBSCRIBING to ACTIVE: the subscription was acknowledged, or polling takes its place.
    pub async fn activate(
        &self,
        s: &SessionKey,
        items: &[(ResourceId, Generation, Mode)],
    ) -> Result<Vec<bool>, StoreError> {
        let ids: Vec<Uuid> = items.iter().map(|i| i.0.get()).collect();
        let generations: Vec<i64> = items.iter().map(|i| column(i.1.get())).collect();
        let modes: Vec<&str> = items.iter().map(|i| i.2.as_str()).collect();
        let mut tries = Tries::default();
        loop {
            let done = sqlx::query_scalar(
                "with asked as (
                     select a.id, a.generation, a.mode, a.n
                     from unnest($1::uuid[], $2::bigint[], $3::text[])
                         with ordinality as a (id, generation, mode, n)
                 ), locked as materialized (
                     select res.id from resource res where res.id = any($1)
                     order by res.id for no key update
                 ), activated as (
                     update resource res set subscription = 'ACTIVE', mode = a.mode
                     from asked a join locked using (id)
                     where res.id = a.id and res.generation = a.generation
                         and res.session_generation = $4 and res.subscription = 'SUBSCRIBING'
                     returning a.n
                 )
                 select x.n is not null from asked a left join activated x using (n) order by n",
            )
            .bind(&ids)
            .bind(&generations)
            .bind(&modes)
            .bind(column(s.generation.get()))
            .fetch_all(self.pool())
            .await
            .map_err(StoreError::from);
            match done {
                Err(error) if tries.again(&error).await => {}
                done => return done,
            }
        }
    }

    /// To UNSUBSCRIBING: nothing is issued any more, and no answer changes anything. Gives the close
    /// ordinal that is frozen; none where that generation is not open.
    pub async fn begin_unsubscribe(
        &self,
        items: &[(ResourceId, Generation)],
    ) -> Result<Vec<Option<Ordinal>>, StoreError> {
        let ids: Vec<Uuid> = items.iter().map(|i| i.0.get()).collect();
        let generations: Vec<i64> = items.iter().map(|i| column(i.1.get())).collect();
        let mut tries = Tries::default();
        let closing: Vec<Option<i64>> = loop {
            let done = sqlx::query_scalar(
                "with asked as (
                     select a.id, a.generation, a.n
                     from unnest($1::uuid[], $2::bigint[]) with ordinality as a (id, generation, n)
                 ), locked as materialized (
                     select res.id from resource res where res.id = any($1)
                     order by res.id for no key update
                 ), closing as (
                     update resource res
                     set subscription = 'UNSUBSCRIBING', close_ordinal = res.last_issued_ordinal,
                         close_epoch = res.close_epoch + 1
                     from asked a join locked using (id)
                     where res.id = a.id and res.generation = a.generation
                         and res.subscription in ('SUBSCRIBING', 'ACTIVE')
                     returning a.n, res.id, res.generation, res.close_ordinal
                 ), marked as (
                     insert into mark (resource_id, at, kind, generation)
                     select c.id, now(), 'closed', c.generation from closing c
                 )
                 select c.close_ordinal from asked a left join closing c using (n) order by n",
            )
            .bind(&ids)
            .bind(&generations)
            .fetch_all(self.pool())
            .await
            .map_err(StoreError::from);
            match done {
                Err(error) if tries.again(&error).await => {}
                done => break done?,
            }
        };
        closing
            .into_iter()
            .map(|ordinal| Ok(ordinal.map(counter).transpose()?.map(Ordinal::new)))
            .collect()
    }

    /// From UNSUBSCRIBING to CLOSED if the server acknowledged (true), else to `UNSUBSCRIBE_UNKNOWN`.
    pub async fn finish_unsubscribe(
        &self,
        items: &[(ResourceId, Generation, bool)],
    ) -> Result<Vec<bool>, StoreError> {
        let ids: Vec<Uuid> = items.iter().map(|i| i.0.get()).collect();
        let generations: Vec<i64> = items.iter().map(|i| column(i.1.get())).collect();
        let acknowledged: Vec<bool> = items.iter().map(|i| i.2).collect();
        let mut tries = Tries::default();
        loop {
            let done = sqlx::query_scalar(
                "with asked as (
                     select a.id, a.generation, a.acknowledged, a.n
                     from unnest($1::uuid[], $2::bigint[], $3::boolean[])
                         with ordinality as a (id, generation, acknowledged, n)
                 ), locked as materialized (
                     select res.id from resource res where res.id = any($1)
                     order by res.id for no key update
                 ), finished as (
                     update resource res
                     set subscription = case when a.acknowledged then 'CLOSED' else 'UNSUBSCRIBE_UNKNOWN' end,
                         closed_at = now()
                     from asked a join locked using (id)
                     where res.id = a.id and res.generation = a.generation
                         and res.subscription = 'UNSUBSCRIBING'
                     returning a.n
                 )
                 select x.n is not null from asked a left join finished x using (n) order by n",
            )
            .bind(&ids)
            .bind(&generations)
            .bind(&acknowledged)
            .fetch_all(self.pool())
            .await
            .map_err(StoreError::from);
            match done {
                Err(error) if tries.again(&error).await => {}
                done => return done,
            }
        }
    }
}

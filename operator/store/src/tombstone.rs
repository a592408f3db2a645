//! Tombstones that reads alone confirm: not found again and again, in order, over `maxStaleness`.
//!
//! Confirming closes the generation, withdraws the current digest and, if a version was current,
//! announces it, in one transaction. When a large share of a (server, subject) has vanished at once,
//! the tombstones are held: a restarted server with an empty list must not delete a fleet.

use fencepost_ledger::{Generation, ResourceId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    Store, advisory,
    error::{StoreError, Tries},
    row::column,
};

/// When tombstones are held back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TombstonePolicy {
    /// Of the ACTIVE resources that had a version: more than this share pending holds them,
    pub hold_share: f64,
    /// if it is also more than this many.
    pub hold_min: u32,
}

impl Default for TombstonePolicy {
    fn default() -> Self {
        Self {
            hold_share: 0.3,
            hold_min: 5,
        }
    }
}

/// What became of a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TombstoneVerdict {
    Confirmed,
    /// Too many vanish at once.
    Held,
    /// Not enough reads, or not for long enough.
    NotYet,
    /// Not pending, not ACTIVE, or another generation.
    Refused,
}

impl Store {
    /// Confirms pending tombstones; answers in order.
    pub async fn confirm_tombstones(
        &self,
        items: &[(ResourceId, Generation)],
        policy: TombstonePolicy,
    ) -> Result<Vec<TombstoneVerdict>, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.try_confirm(items, policy).await {
                Err(error) if tries.again(&error).await => {}
                done => return done,
            }
        }
    }

    async fn try_confirm(
        &self,
        items: &[(ResourceId, Generation)],
        policy: TombstonePolicy,
    ) -> Result<Vec<TombstoneVerdict>, StoreError> {
        let ids: Vec<Uuid> = items.iter().map(|i| i.0.get()).collect();
        let generations: Vec<i64> = items.iter().map(|i| column(i.1.get())).collect();
        let mut tx = self.pool().begin().await?;
        sqlx::query(
            "select res.id from resource res where res.id = any($1) order by res.id for no key update",
        )
        .bind(&ids)
        .execute(&mut *tx)
        .await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(advisory::OUTBOX)
            .execute(&mut *tx)
            .await?;
        let verdicts = confirm(&mut tx, &ids, &generations, policy).await?;
        tx.commit().await?;
        let verdicts: Vec<TombstoneVerdict> = verdicts
            .iter()
            .map(|verdict| match verdict.as_str() {
                "CONFIRMED" => Ok(TombstoneVerdict::Confirmed),
                "HELD" => Ok(TombstoneVerdict::Held),
                "NOT_YET" => Ok(TombstoneVerdict::NotYet),
                "REFUSED" => Ok(TombstoneVerdict::Refused),
                other => Err(StoreError::corrupt(format!("the verdict {other:?}"))),
            })
            .collect::<Result<_, _>>()?;
        if verdicts.contains(&TombstoneVerdict::Confirmed) {
            // Full: readers will be woken anyway.
            let _ = self.inner.hint.try_send(());
        }
        Ok(verdicts)
    }
}

async fn confirm(
    connection: &mut PgConnection,
    ids: &[Uuid],
    generations: &[i64],
    policy: TombstonePolicy,
) -> Result<Vec<String>, StoreError> {
    let events: Vec<Uuid> = ids.iter().map(|_| Uuid::now_v7()).collect();
    let verdicts = sqlx::query_scalar(
        "with asked as (
             select a.id, a.generation, a.event_id, a.n
             from unnest($1::uuid[], $2::bigint[], $3::uuid[])
                 with ordinality as a (id, generation, event_id, n)
         ), held as materialized (
             select res.server_uid, res.subject_uid
             from resource res
             where (res.server_uid, res.subject_uid) in (
                     select r.server_uid, r.subject_uid from resource r where r.id = any($1))
                 and res.subscription = 'ACTIVE' and res.digest is not null
             group by res.server_uid, res.subject_uid
             having count(*) filter (where res.presence = 'TOMBSTONE_PENDING') > $5
                 and count(*) filter (where res.presence = 'TOMBSTONE_PENDING') > $4 * count(*)
         ), judged as materialized (
             select a.n, a.id, a.generation, a.event_id, res.digest as previous_digest,
                 case
                     when res.presence is distinct from 'TOMBSTONE_PENDING'
                         or res.subscription <> 'ACTIVE' or res.generation <> a.generation then 'REFUSED'
                     when res.not_found_reads < 2
                         or res.tombstone_since + res.max_staleness > now() then 'NOT_YET'
                     when (res.server_uid, res.subject_uid) in (
                         select h.server_uid, h.subject_uid from held h) then 'HELD'
                     else 'CONFIRMED'
                 end as verdict
             from asked a
             left join resource res on res.id = a.id
         ), confirmed as (
             update resource res
             set presence = 'TOMBSTONED', subscription = 'CLOSED', tombstone_basis = 'ReadsOnly',
                 close_ordinal = res.last_issued_ordinal, close_epoch = res.close_epoch + 1,
                 closed_at = now(), digest = null, mime_type = null, size = null, dirty_since = null
             from judged j
             where res.id = j.id and j.verdict = 'CONFIRMED'
                 and res.presence = 'TOMBSTONE_PENDING' and res.subscription = 'ACTIVE'
                 and res.generation = j.generation and res.not_found_reads >= 2
                 and res.tombstone_since + res.max_staleness <= now()
             returning j.n, j.event_id, j.previous_digest, res.id, res.server_uid, res.subject_uid,
                 res.uri, res.watches, res.generation, res.settled_ordinal
         ), marked as (
             insert into mark (resource_id, at, kind, generation)
             select c.id, now(), 'tombstoned', c.generation from confirmed c
         ), announced as (
             insert into outbox (position, id, kind, resource_id, namespace, server, subject, watches,
                 uri, epoch, generation, ordinal, previous_digest, basis)
             select nextval('outbox_position'), o.event_id, 'resource.tombstoned', o.id, o.namespace,
                 o.server, o.subject, o.watches, o.uri, o.epoch, o.generation, o.settled_ordinal,
                 o.previous_digest, 'ReadsOnly'
             from (
                 select c.event_id, c.id, server.namespace, server.name as server,
                     subject.name as subject, subject.epoch, c.watches, c.uri, c.generation,
                     c.settled_ordinal, c.previous_digest
                 from confirmed c
                 join server on server.uid = c.server_uid
                 join subject on subject.uid = c.subject_uid
                 where c.previous_digest is not null
                 order by c.n
             ) o
         )
         select case when j.verdict = 'CONFIRMED' and c.n is null then 'REFUSED' else j.verdict end
         from judged j left join confirmed c using (n) order by n",
    )
    .bind(ids)
    .bind(generations)
    .bind(events)
    .bind(policy.hold_share)
    .bind(i64::from(policy.hold_min))
    .fetch_all(connection)
    .await?;
    Ok(verdicts)
}

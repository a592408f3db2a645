//! Publishing what the manifests declare now: whole sets of servers, subjects, watches and indexes.
//!
//! What is missing from a set is marked as deleted; a uid that comes back is live again. A name with a
//! new uid is a new object: nothing of the old one is carried over. A subject that is withdrawn or
//! gone, and a server that is gone, begin closing their open resources in the same transaction.

use fencepost_views::Condition;
use serde_json::Value;
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use crate::{
    Store, advisory,
    error::{StoreError, Tries},
};

/// All objects of the manifests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Published {
    pub servers: Vec<ServerRow>,
    pub subjects: Vec<SubjectRow>,
    pub watches: Vec<WatchRow>,
    pub indexes: Vec<IndexRow>,
}

/// An `MCPServer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    pub uid: Uuid,
    pub namespace: String,
    pub name: String,
    /// A URL without credentials, or `stdio: <command>`.
    pub address: String,
    /// Auto, Legacy or Modern.
    pub protocol: String,
}

/// An `MCPSubject`, or the anonymous subject of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRow {
    pub uid: Uuid,
    pub namespace: String,
    pub name: String,
    pub anonymous: bool,
    pub revoked: bool,
}

/// A `WatchedResource`.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchRow {
    pub uid: Uuid,
    pub namespace: String,
    pub name: String,
    pub server_uid: Option<Uuid>,
    pub subject_uid: Option<Uuid>,
    /// What the API shows of the spec, with the keys of `views::Watch`.
    pub shown: Value,
    pub conditions: Vec<Condition>,
}

/// A `DerivedIndex`. A new one is told what comes after its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    pub uid: Uuid,
    pub namespace: String,
    pub name: String,
    pub url: String,
    /// None: all of its namespace; otherwise `namespace/name`.
    pub watches: Option<Vec<String>>,
    /// None: all kinds.
    pub events: Option<Vec<String>>,
    pub include_content: bool,
    pub include_supersede: bool,
}

/// Under which claim a replica publishes. Only the newest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherEpoch(i64);

impl Store {
    /// Makes the objects of the database those of the manifests, in one transaction. For the only process
    /// that uses this database; several settle who publishes with [`Self::claim_publishing`].
    pub async fn publish(&self, objects: &Published) -> Result<(), StoreError> {
        self.publish_under(objects, None).await.map(|_| ())
    }

    /// Becomes the one replica that publishes, until another claims.
    pub async fn claim_publishing(&self) -> Result<PublisherEpoch, StoreError> {
        let epoch = sqlx::query_scalar(
            "insert into publisher as p (epoch, owner) values (1, $1)
             on conflict (singleton) do update
             set epoch = p.epoch + 1, owner = excluded.owner, claimed_at = now()
             returning epoch",
        )
        .bind(self.replica())
        .fetch_one(self.pool())
        .await?;
        Ok(PublisherEpoch(epoch))
    }

    /// Whether nobody claimed since.
    pub async fn claim_stands(&self, epoch: PublisherEpoch) -> Result<bool, StoreError> {
        let newest: Option<i64> = sqlx::query_scalar("select epoch from publisher")
            .fetch_optional(self.pool())
            .await?;
        Ok(newest == Some(epoch.0))
    }

    /// Publishes as [`Self::publish`] does, if nobody claimed since `epoch` was given. False: somebody did, and
    /// nothing was changed. A replica that was paused and wakes up ends here.
    pub async fn publish_as(
        &self,
        epoch: PublisherEpoch,
        objects: &Published,
    ) -> Result<bool, StoreError> {
        self.publish_under(objects, Some(epoch)).await
    }

    async fn publish_under(
        &self,
        objects: &Published,
        epoch: Option<PublisherEpoch>,
    ) -> Result<bool, StoreError> {
        let mut tries = Tries::default();
        loop {
            match self.try_publish(objects, epoch).await {
                Err(error) if tries.again(&error).await => {}
                done => return done,
            }
        }
    }

    async fn try_publish(
        &self,
        objects: &Published,
        epoch: Option<PublisherEpoch>,
    ) -> Result<bool, StoreError> {
        let mut tx = self.pool().begin().await?;
        sqlx::query("select pg_advisory_xact_lock($1)")
            .bind(advisory::PUBLISH)
            .execute(&mut *tx)
            .await?;
        if let Some(PublisherEpoch(ours)) = epoch {
            // Locked until the commit: a claim waits for it, and comes after it in full.
            let newest: Option<i64> = sqlx::query_scalar("select epoch from publisher for share")
                .fetch_optional(&mut *tx)
                .await?;
            if newest != Some(ours) {
                return Ok(false);
            }
        }
        servers(&mut tx, &objects.servers).await?;
        subjects(&mut tx, &objects.subjects).await?;
        begin_closing(&mut tx).await?;
        watches(&mut tx, &objects.watches).await?;
        indexes(&mut tx, &objects.indexes).await?;
        tx.commit().await?;
        Ok(true)
    }
}

async fn servers(tx: &mut PgConnection, rows: &[ServerRow]) -> Result<(), StoreError> {
    let uids: Vec<Uuid> = rows.iter().map(|r| r.uid).collect();
    sqlx::query("update server set deleted_at = now() where deleted_at is null and uid <> all($1)")
        .bind(&uids)
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "insert into server as s (uid, namespace, name, address, protocol)
         select a.uid, a.namespace, a.name, a.address, a.protocol
         from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])
             as a (uid, namespace, name, address, protocol)
         on conflict (uid) do update
         set namespace = excluded.namespace, name = excluded.name, address = excluded.address,
             protocol = excluded.protocol, deleted_at = null
         where s.deleted_at is not null or (s.namespace, s.name, s.address, s.protocol)
             <> (excluded.namespace, excluded.name, excluded.address, excluded.protocol)",
    )
    .bind(&uids)
    .bind(
        rows.iter()
            .map(|r| r.namespace.as_str())
            .collect::<Vec<_>>(),
    )
    .bind(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.address.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.protocol.as_str()).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// The epoch rises exactly when a permission goes: revoked, or its object deleted. The anonymous
/// subject of a namespace has no object: that no watch asks for it any more withdraws nothing. It goes
/// when an object takes its name.
async fn subjects(tx: &mut PgConnection, rows: &[SubjectRow]) -> Result<(), StoreError> {
    let uids: Vec<Uuid> = rows.iter().map(|r| r.uid).collect();
    sqlx::query(
        "update subject
         set deleted_at = now(), revoked = true,
             epoch = epoch + case when revoked then 0 else 1 end,
             revoked_at = case when revoked then revoked_at else now() end
         where deleted_at is null and uid <> all($1)
             and not (anonymous and not exists (
                 select from unnest($2::text[], $3::text[]) as a (namespace, name)
                 where a.namespace = subject.namespace and a.name = subject.name))",
    )
    .bind(&uids)
    .bind(
        rows.iter()
            .map(|r| r.namespace.as_str())
            .collect::<Vec<_>>(),
    )
    .bind(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>())
    .execute(&mut *tx)
    .await?;
    sqlx::query(
        // One that was recreated under its name goes on from the epoch of its predecessor: events name it, and are compared by it.
        "insert into subject as s (uid, namespace, name, anonymous, epoch, revoked, revoked_at)
         select a.uid, a.namespace, a.name, a.anonymous,
             coalesce((select max(o.epoch) + 1 from subject o
                 where o.namespace = a.namespace and o.name = a.name), 1),
             a.revoked, case when a.revoked then now() end
         from unnest($1::uuid[], $2::text[], $3::text[], $4::boolean[], $5::boolean[])
             as a (uid, namespace, name, anonymous, revoked)
         on conflict (uid) do update
         set namespace = excluded.namespace, name = excluded.name, anonymous = excluded.anonymous,
             epoch = s.epoch + case when excluded.revoked and not s.revoked then 1 else 0 end,
             revoked_at = case
                 when not excluded.revoked then null
                 when s.revoked then s.revoked_at
                 else now() end,
             revoked = excluded.revoked, deleted_at = null
         where s.deleted_at is not null or (s.namespace, s.name, s.anonymous, s.revoked)
             <> (excluded.namespace, excluded.name, excluded.anonymous, excluded.revoked)",
    )
    .bind(&uids)
    .bind(
        rows.iter()
            .map(|r| r.namespace.as_str())
            .collect::<Vec<_>>(),
    )
    .bind(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.anonymous).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.revoked).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

/// Open resources whose subject may not read any more, or whose server is gone, begin closing.
async fn begin_closing(tx: &mut PgConnection) -> Result<(), StoreError> {
    sqlx::query(
        "with locked as materialized (
             select res.id from resource res
             join subject on subject.uid = res.subject_uid
             join server on server.uid = res.server_uid
             where res.subscription in ('SUBSCRIBING', 'ACTIVE')
                 and (subject.revoked or server.deleted_at is not null)
             order by res.id
             for no key update of res
         ), closing as (
             update resource res
             set subscription = 'UNSUBSCRIBING', close_ordinal = res.last_issued_ordinal,
                 close_epoch = res.close_epoch + 1
             from locked
             where res.id = locked.id and res.subscription in ('SUBSCRIBING', 'ACTIVE')
             returning res.id, res.generation
         )
         insert into mark (resource_id, at, kind, generation)
         select c.id, now(), 'closed', c.generation from closing c",
    )
    .execute(tx)
    .await?;
    Ok(())
}

async fn watches(tx: &mut PgConnection, rows: &[WatchRow]) -> Result<(), StoreError> {
    let uids: Vec<Uuid> = rows.iter().map(|r| r.uid).collect();
    sqlx::query("update watch set deleted_at = now() where deleted_at is null and uid <> all($1)")
        .bind(&uids)
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "insert into watch as w (uid, namespace, name, server_uid, subject_uid, shown, conditions)
         select a.uid, a.namespace, a.name, a.server_uid, a.subject_uid, a.shown, a.conditions
         from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::jsonb[], $7::jsonb[])
             as a (uid, namespace, name, server_uid, subject_uid, shown, conditions)
         on conflict (uid) do update
         set namespace = excluded.namespace, name = excluded.name, server_uid = excluded.server_uid,
             subject_uid = excluded.subject_uid, shown = excluded.shown,
             conditions = excluded.conditions, deleted_at = null
         where w.deleted_at is not null
             or (w.namespace, w.name, w.server_uid, w.subject_uid, w.shown, w.conditions)
             is distinct from (excluded.namespace, excluded.name, excluded.server_uid,
                 excluded.subject_uid, excluded.shown, excluded.conditions)",
    )
    .bind(&uids)
    .bind(rows.iter().map(|r| r.namespace.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.server_uid).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.subject_uid).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| Json(&r.shown)).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| Json(&r.conditions)).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

async fn indexes(tx: &mut PgConnection, rows: &[IndexRow]) -> Result<(), StoreError> {
    let uids: Vec<Uuid> = rows.iter().map(|r| r.uid).collect();
    sqlx::query(
        "update derived_index set deleted_at = now() where deleted_at is null and uid <> all($1)",
    )
    .bind(&uids)
    .execute(&mut *tx)
    .await?;
    let lists = |list: &Option<Vec<String>>| list.clone().map(Json);
    // Positions above the head belong to transactions that are still open: they come after.
    sqlx::query(
        "insert into derived_index as i (uid, namespace, name, url, watches, events, include_content,
             include_supersede, delivered_position, acknowledged_position)
         select a.uid, a.namespace, a.name, a.url,
             case when a.watches is not null then array(select jsonb_array_elements_text(a.watches)) end,
             case when a.events is not null then array(select jsonb_array_elements_text(a.events)) end,
             a.include_content, a.include_supersede, head.position, head.position
         from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::jsonb[],
                 $7::boolean[], $8::boolean[])
             as a (uid, namespace, name, url, watches, events, include_content, include_supersede),
             (select coalesce(max(o.position), 0) as position from outbox o) head
         on conflict (uid) do update
         set namespace = excluded.namespace, name = excluded.name, url = excluded.url,
             watches = excluded.watches, events = excluded.events,
             include_content = excluded.include_content,
             include_supersede = excluded.include_supersede, deleted_at = null
         where i.deleted_at is not null or (i.namespace, i.name, i.url, i.watches, i.events,
                 i.include_content, i.include_supersede)
             is distinct from (excluded.namespace, excluded.name, excluded.url, excluded.watches,
                 excluded.events, excluded.include_content, excluded.include_supersede)",
    )
    .bind(&uids)
    .bind(rows.iter().map(|r| r.namespace.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.url.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| lists(&r.watches)).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| lists(&r.events)).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.include_content).collect::<Vec<_>>())
    .bind(rows.iter().map(|r| r.include_supersede).collect::<Vec<_>>())
    .execute(tx)
    .await?;
    Ok(())
}

//! Resources: what is to be watched, as the engine expanded it.
//!
//! In come the specs of a (server, subject), out go the rows with their ids and where each stands. The
//! state of a resource is not changed here: see `subscription`.

use std::{collections::HashMap, time::Duration};

use fencepost_ledger::{Digest, Generation, Ordinal, Presence, ResourceId, SubscriptionState};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    Store,
    error::{StoreError, Tries},
    row::{column, counter, digest, interval, word},
    session::SessionKey,
};

/// How refresh is driven in fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    Subscribe,
    Poll,
}

impl Mode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subscribe => "Subscribe",
            Self::Poll => "Poll",
        }
    }
}

/// One resource to watch.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSpec {
    pub uri: String,
    pub uri_normal: Option<String>,
    /// What watches it: `namespace/name`.
    pub watches: Vec<String>,
    pub mode: Mode,
    pub cohort: bool,
    pub max_staleness: Duration,
    /// Between polls or audits, for display.
    pub read_interval: Duration,
    pub store_content: bool,
    /// At least 1.
    pub keep_versions: u32,
}

/// Where a resource stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    pub id: ResourceId,
    pub generation: Generation,
    pub subscription: SubscriptionState,
    pub presence: Presence,
    pub digest: Option<Digest>,
    pub last_issued: Ordinal,
    pub watermark: Ordinal,
    /// A notification has come for it, and no audit since found a change that none announced.
    pub delivery_proven: bool,
}

/// Specs per statement: a fleet's 12,000 URIs in a dozen of short transactions.
const SPECS_PER_STATEMENT: usize = 1000;

impl Store {
    /// Creates or updates the resources by their exact URI; the rows answer in the order of `specs`.
    pub async fn put_resources(
        &self,
        s: &SessionKey,
        specs: &[ResourceSpec],
    ) -> Result<Vec<ResourceRow>, StoreError> {
        let mut rows = Vec::with_capacity(specs.len());
        for chunk in specs.chunks(SPECS_PER_STATEMENT) {
            let mut tries = Tries::default();
            rows.extend(loop {
                match self.try_put(s, chunk).await {
                    Err(error) if tries.again(&error).await => {}
                    done => break done?,
                }
            });
        }
        Ok(rows)
    }

    async fn try_put(
        &self,
        s: &SessionKey,
        specs: &[ResourceSpec],
    ) -> Result<Vec<ResourceRow>, StoreError> {
        let uris: Vec<&str> = specs.iter().map(|r| r.uri.as_str()).collect();
        let mut tx = self.pool().begin().await?;
        // In the order of ids like everybody; the upsert below goes by URI.
        let before: Vec<(Uuid, String, i32)> = sqlx::query_as(
            "select res.id, res.uri, res.keep_versions from resource res
             where res.server_uid = $1 and res.subject_uid = $2 and res.uri = any($3)
             order by res.id for no key update",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(&uris)
        .fetch_all(&mut *tx)
        .await?;
        sqlx::query(
            // A server or subject that was recreated under its name is another one, and begins a history of its own. Whoever is told
            // of it by name compares generations: they go on from those of its predecessors.
            "with predecessors as materialized (
                 select os.uid as server_uid, ou.uid as subject_uid
                 from server ns join server os on os.namespace = ns.namespace and os.name = ns.name,
                     subject nu join subject ou on ou.namespace = nu.namespace and ou.name = nu.name
                 where ns.uid = $1 and nu.uid = $2 and (os.uid, ou.uid) <> ($1, $2)
             )
             insert into resource as res (id, server_uid, subject_uid, uri, uri_normal, watches, mode, cohort,
                 max_staleness, read_interval, store_content, keep_versions, generation)
             select distinct on (a.uri) a.id, $1, $2, a.uri, a.uri_normal,
                 array(select w from jsonb_array_elements_text(a.watches) w order by w),
                 a.mode, a.cohort, a.max_staleness, a.read_interval, a.store_content, a.keep_versions,
                 coalesce((select max(o.generation) from predecessors p
                     join resource o on o.server_uid = p.server_uid and o.subject_uid = p.subject_uid
                         and o.uri = a.uri), 0)
             from unnest($3::uuid[], $4::text[], $5::text[], $6::jsonb[], $7::text[], $8::boolean[],
                     $9::interval[], $10::interval[], $11::boolean[], $12::integer[])
                 with ordinality as a (id, uri, uri_normal, watches, mode, cohort, max_staleness,
                     read_interval, store_content, keep_versions, n)
             order by a.uri, a.n desc
             on conflict (server_uid, subject_uid, uri) do update
             set uri_normal = excluded.uri_normal, watches = excluded.watches, mode = excluded.mode,
                 cohort = excluded.cohort, max_staleness = excluded.max_staleness,
                 read_interval = excluded.read_interval, store_content = excluded.store_content,
                 keep_versions = excluded.keep_versions
             where (res.uri_normal, res.watches, res.mode, res.cohort, res.max_staleness,
                     res.read_interval, res.store_content, res.keep_versions)
                 is distinct from (excluded.uri_normal, excluded.watches, excluded.mode, excluded.cohort,
                     excluded.max_staleness, excluded.read_interval, excluded.store_content,
                     excluded.keep_versions)",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(specs.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
        .bind(&uris)
        .bind(specs.iter().map(|r| r.uri_normal.as_deref()).collect::<Vec<_>>())
        .bind(specs.iter().map(|r| Value::from(r.watches.clone())).collect::<Vec<_>>())
        .bind(specs.iter().map(|r| r.mode.as_str()).collect::<Vec<_>>())
        .bind(specs.iter().map(|r| r.cohort).collect::<Vec<_>>())
        .bind(specs.iter().map(|r| interval(r.max_staleness)).collect::<Vec<_>>())
        .bind(specs.iter().map(|r| interval(r.read_interval)).collect::<Vec<_>>())
        .bind(specs.iter().map(|r| r.store_content).collect::<Vec<_>>())
        .bind(specs.iter().map(keep_versions).collect::<Vec<_>>())
        .execute(&mut *tx)
        .await?;
        let wanted: HashMap<&str, i32> = specs
            .iter()
            .map(|r| (r.uri.as_str(), keep_versions(r)))
            .collect();
        let lowered: Vec<Uuid> = before
            .iter()
            .filter(|(_, uri, kept)| wanted.get(uri.as_str()).is_some_and(|wanted| wanted < kept))
            .map(|(id, ..)| *id)
            .collect();
        if !lowered.is_empty() {
            let_go(&mut tx, &lowered).await?;
        }
        let rows: Vec<Row> = sqlx::query_as(
            "select res.id, res.generation, res.subscription, res.presence, res.digest,
                 res.last_issued_ordinal, res.ordinal, res.delivery_proven
             from unnest($3::text[]) with ordinality as a (uri, n)
             join resource res on res.server_uid = $1 and res.subject_uid = $2 and res.uri = a.uri
             order by a.n",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(&uris)
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        rows.iter().map(Row::parsed).collect()
    }

    /// Open resources of the session whose URI is not in `keep`: what to unsubscribe from.
    pub async fn open_resources_not_in(
        &self,
        s: &SessionKey,
        keep: &[String],
    ) -> Result<Vec<(ResourceId, Generation)>, StoreError> {
        let rows: Vec<(Uuid, i64)> = sqlx::query_as(
            "select id, generation from resource
             where server_uid = $1 and subject_uid = $2 and session_generation = $3
                 and subscription in ('SUBSCRIBING', 'ACTIVE') and uri <> all($4)
             order by id",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(column(s.generation.get()))
        .bind(keep)
        .fetch_all(self.pool())
        .await?;
        rows.into_iter()
            .map(|(id, generation)| {
                Ok((ResourceId::new(id), Generation::new(counter(generation)?)))
            })
            .collect()
    }

    /// Takes the watches off every resource of (server, subject) whose URI is not in `keep`: no
    /// manifest names it any more. Its content and receipts stay.
    pub async fn unwatch_except(&self, s: &SessionKey, keep: &[String]) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "with locked as materialized (
                 select res.id from resource res
                 where res.server_uid = $1 and res.subject_uid = $2 and res.uri <> all($3)
                     and res.watches <> '{}'
                 order by res.id for no key update
             )
             update resource res set watches = '{}' from locked where res.id = locked.id",
        )
        .bind(s.server)
        .bind(s.subject)
        .bind(keep)
        .execute(self.pool())
        .await?;
        Ok(done.rows_affected())
    }

    /// Sets what the engine has found out about resources: (volatile, delivery proven).
    pub async fn set_flags(&self, items: &[(ResourceId, bool, bool)]) -> Result<(), StoreError> {
        sqlx::query(
            "with locked as materialized (
                 select res.id from resource res where res.id = any($1)
                 order by res.id for no key update
             )
             update resource res
             set volatile = a.volatile, delivery_proven = a.delivery_proven
             from unnest($1::uuid[], $2::boolean[], $3::boolean[]) as a (id, volatile, delivery_proven)
             join locked using (id)
             where res.id = a.id
                 and (res.volatile, res.delivery_proven) <> (a.volatile, a.delivery_proven)",
        )
        .bind(items.iter().map(|i| i.0.get()).collect::<Vec<_>>())
        .bind(items.iter().map(|i| i.1).collect::<Vec<_>>())
        .bind(items.iter().map(|i| i.2).collect::<Vec<_>>())
        .execute(self.pool())
        .await?;
        Ok(())
    }
}

fn keep_versions(spec: &ResourceSpec) -> i32 {
    i32::try_from(spec.keep_versions).unwrap_or(i32::MAX).max(1)
}

/// Lets go of what a lowered `keepVersions` no longer keeps. Acceptance lets go of one version for
/// each new one and looks no further back.
async fn let_go(connection: &mut PgConnection, ids: &[Uuid]) -> Result<(), sqlx::Error> {
    sqlx::query(
        "update resource_version v set content_kept = false
         from resource res
         where res.id = any($1) and v.resource_id = res.id and v.content_kept
             and v.number <= res.version_count - res.keep_versions",
    )
    .bind(ids)
    .execute(connection)
    .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    generation: i64,
    subscription: String,
    presence: String,
    digest: Option<Vec<u8>>,
    last_issued_ordinal: i64,
    ordinal: i64,
    delivery_proven: bool,
}

impl Row {
    fn parsed(&self) -> Result<ResourceRow, StoreError> {
        Ok(ResourceRow {
            id: ResourceId::new(self.id),
            generation: Generation::new(counter(self.generation)?),
            subscription: word(&self.subscription)?,
            presence: word(&self.presence)?,
            digest: self.digest.as_deref().map(digest).transpose()?,
            last_issued: Ordinal::new(counter(self.last_issued_ordinal)?),
            watermark: Ordinal::new(counter(self.ordinal)?),
            delivery_proven: self.delivery_proven,
        })
    }
}

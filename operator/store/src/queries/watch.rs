//! Watches: what a `WatchedResource` declares and what has come of it.

use std::collections::HashMap;

use fencepost_views::{Condition, NameRef, Page, StateCount, Watch};
use serde::Deserialize;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::shown::{add_count, overdue, revoked, state};
use super::{PageSize, Queries, QueryError, cursor};

#[derive(FromRow)]
struct Row {
    uid: Uuid,
    namespace: String,
    name: String,
    shown: Json<Shown>,
    conditions: Json<Vec<Condition>>,
}

/// What the publisher wrote of the spec.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    server: NameRef,
    subject: NameRef,
    mode: String,
    max_staleness_seconds: f64,
    poll_interval_seconds: f64,
    stage: String,
    percent: u32,
    suspended: bool,
}

#[derive(Default)]
struct Tally {
    resources: Vec<StateCount>,
    stale: i64,
    /// Those that should follow their server, and those of them whose last invalidation is answered.
    following: i64,
    converged: i64,
}

impl Queries {
    /// One page of the watches that are declared now, by name.
    pub async fn watches(
        &self,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Watch>, QueryError> {
        let (namespace, name): (String, String) = cursor::decode(after)?.unwrap_or_default();
        let mut lent = self.connection().await?;
        let rows: Vec<Row> = sqlx::query_as(
            "select uid, namespace, name, shown, conditions from watch \
             where deleted_at is null and (namespace, name) > ($1, $2) order by namespace, name limit $3",
        )
        .bind(namespace)
        .bind(name)
        .bind(size.fetch())
        .fetch_all(lent.get())
        .await?;
        let names: Vec<String> = rows.iter().map(Row::full_name).collect();
        let groups: Vec<(String, String, i64, i64, i64, i64)> = sqlx::query_as(concat!(
            "select w.name, ",
            state!(),
            " as state, count(*), count(*) filter (where ",
            overdue!(),
            "), count(*) filter (where r.presence <> 'TOMBSTONED' and not ",
            revoked!(),
            "), count(*) filter (where r.presence <> 'TOMBSTONED' and not ",
            revoked!(),
            " and r.confirmed_at is not null and r.dirty_since is null) \
             from resource r join subject sub on sub.uid = r.subject_uid \
             cross join lateral unnest(r.watches) as w (name) \
             where r.watches && $1 and w.name = any($1) group by 1, 2"
        ))
        .bind(&names)
        .fetch_all(lent.get())
        .await?;
        let mut tallies: HashMap<String, Tally> = HashMap::new();
        for (watch, state, count, stale, following, converged) in groups {
            let tally = tallies.entry(watch).or_default();
            add_count(&mut tally.resources, state, count);
            tally.stale += stale;
            tally.following += following;
            tally.converged += converged;
        }
        let item = |row: Row| {
            let tally = tallies.get(&row.full_name());
            let Json(shown) = row.shown;
            Watch {
                namespace: row.namespace,
                name: row.name,
                uid: row.uid.to_string(),
                server: shown.server,
                subject: shown.subject,
                mode: shown.mode,
                max_staleness_seconds: shown.max_staleness_seconds,
                poll_interval_seconds: shown.poll_interval_seconds,
                stage: shown.stage,
                percent: shown.percent,
                suspended: shown.suspended,
                resources: tally
                    .map(|tally| tally.resources.clone())
                    .unwrap_or_default(),
                stale: tally.map_or(0, |tally| tally.stale),
                converged_ratio: tally
                    .filter(|tally| tally.following > 0)
                    .map(|tally| tally.converged as f64 / tally.following as f64),
                conditions: row.conditions.0,
            }
        };
        Ok(size.cut(rows, |row| (row.namespace.clone(), row.name.clone()), item))
    }
}

impl Row {
    /// As `resource.watches` names it.
    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

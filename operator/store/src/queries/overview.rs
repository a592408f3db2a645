//! The overview: objectives, what is wrong now, and a row for each server.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use fencepost_views::{Overview, StateCount};

use super::shown::revoked;
use super::{Queries, QueryError, objective, series, server, trouble};
use crate::sample::CONVERGENCE_TARGET_SECONDS;

impl Queries {
    /// Everything of the first screen, over the last `range`.
    pub async fn overview(&self, range: TimeDelta) -> Result<Overview, QueryError> {
        let mut lent = self.connection().await?;
        let folded = series::fold(&mut lent, range).await?;
        let servers = server::overview_rows(&mut lent).await?;
        let attention = trouble::groups(&mut lent, self.store.writes_refused()).await?;
        let calm_since: Option<DateTime<Utc>> = if attention.is_empty() {
            trouble::calm_since(&mut lent).await?
        } else {
            None
        };
        let unanswered: i64 = sqlx::query_scalar(concat!(
            "select count(*) from resource r join subject sub on sub.uid = r.subject_uid \
             where r.dirty_since < now() - make_interval(secs => $1) and cardinality(r.watches) > 0 \
             and r.presence <> 'TOMBSTONED' and not ",
            revoked!()
        ))
        .bind(CONVERGENCE_TARGET_SECONDS)
        .fetch_one(lent.get())
        .await?;
        let empty: bool = sqlx::query_scalar(
            "select not exists (select 1 from server where deleted_at is null) \
             and not exists (select 1 from watch where deleted_at is null)",
        )
        .fetch_one(lent.get())
        .await?;
        let mut resources: BTreeMap<String, i64> = BTreeMap::new();
        for count in servers.iter().flat_map(|server| &server.resources) {
            *resources.entry(count.state.clone()).or_default() += count.count;
        }
        Ok(Overview {
            at: folded.to,
            range_seconds: range.as_seconds_f64(),
            objectives: objective::objectives(&folded, unanswered.unsigned_abs()),
            attention,
            calm_since,
            stale: servers.iter().map(|server| server.stale).sum(),
            servers,
            resources: resources
                .into_iter()
                .map(|(state, count)| StateCount { state, count })
                .collect(),
            empty,
        })
    }
}

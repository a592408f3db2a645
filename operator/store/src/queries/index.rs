//! Derived indexes: how far each has been told, and how old the oldest thing is that it has not confirmed.

use chrono::{DateTime, Utc};
use fencepost_views::{Condition, Index, Page};
use sqlx::FromRow;
use uuid::Uuid;

use super::{PageSize, Queries, QueryError, cursor};
use crate::delivery::MATCHES;

/// Lag beyond which an index is behind: the objective's target.
pub(super) const LAG_TARGET_SECONDS: f64 = 30.0;

/// Pending events counted at most. An index that is further behind than this is not better described
/// by a larger number, and the count must not walk the whole outbox.
const MAX_PENDING: i64 = 10_000;

#[derive(FromRow)]
pub(super) struct Row {
    uid: Uuid,
    pub(super) namespace: String,
    pub(super) name: String,
    url: String,
    delivered_position: i64,
    acknowledged_position: i64,
    head_position: i64,
    attempts: i64,
    pub(super) last_error: Option<String>,
    retry_at: Option<DateTime<Utc>>,
    last_acknowledged_at: Option<DateTime<Utc>>,
    pub(super) created_at: DateTime<Utc>,
    pending: i64,
    pub(super) oldest_pending: Option<DateTime<Utc>>,
    pub(super) lag_seconds: f64,
}

impl Queries {
    /// One page of the indexes that are declared now, by name.
    pub async fn indexes(
        &self,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Index>, QueryError> {
        let after = cursor::decode(after)?.unwrap_or_default();
        let mut lent = self.connection().await?;
        let rows = rows(&mut lent, size.fetch(), after).await?;
        Ok(size.cut(
            rows,
            |row| (row.namespace.clone(), row.name.clone()),
            Index::from,
        ))
    }
}

/// What is pending is judged by the condition that delivers it.
pub(super) async fn rows(
    lent: &mut super::Lent,
    limit: i64,
    (namespace, name): (String, String),
) -> Result<Vec<Row>, QueryError> {
    let sql = format!(
        "select i.uid, i.namespace, i.name, i.url, i.delivered_position, i.acknowledged_position, \
         coalesce((select max(position) from outbox), 0) as head_position, i.attempts::bigint as attempts, \
         i.last_error, i.retry_at, i.last_acknowledged_at, i.created_at, waiting.pending, waiting.oldest_pending, \
         coalesce(extract(epoch from greatest(now() - waiting.oldest_pending, interval '0'))::float8, 0) as lag_seconds \
         from derived_index i cross join lateral ( \
          select count(*) as pending, min(p.created_at) as oldest_pending from ( \
           select o.created_at from outbox o where o.position > i.acknowledged_position \
           and {MATCHES} order by o.position limit $4) p) waiting \
         where i.deleted_at is null and (i.namespace, i.name) > ($1, $2) order by i.namespace, i.name limit $3"
    );
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
        .bind(namespace)
        .bind(name)
        .bind(limit)
        .bind(MAX_PENDING)
        .fetch_all(lent.get())
        .await?)
}

impl Row {
    pub(super) fn behind(&self) -> bool {
        self.last_error.is_some() || self.lag_seconds > LAG_TARGET_SECONDS
    }
}

impl From<Row> for Index {
    fn from(row: Row) -> Self {
        let mut conditions = Vec::new();
        let since = row.oldest_pending.unwrap_or(row.created_at);
        if let Some(error) = &row.last_error {
            conditions.push(Condition {
                kind: "DeliveryFailing".to_owned(),
                reason: "LAST_TRY_FAILED".to_owned(),
                message: error.clone(),
                since,
            });
        }
        if row.lag_seconds > LAG_TARGET_SECONDS {
            conditions.push(Condition {
                kind: "IndexBehind".to_owned(),
                reason: "LAG_PAST_TARGET".to_owned(),
                message: format!(
                    "The oldest event that is not confirmed waits for {:.0} s; the target is {LAG_TARGET_SECONDS:.0} s.",
                    row.lag_seconds
                ),
                since,
            });
        }
        Self {
            namespace: row.namespace,
            name: row.name,
            uid: row.uid.to_string(),
            url: row.url,
            delivered_position: row.delivered_position,
            acknowledged_position: row.acknowledged_position,
            head_position: row.head_position,
            lag_seconds: row.lag_seconds,
            pending: row.pending,
            attempts: row.attempts,
            last_error: row.last_error,
            retry_at: row.retry_at,
            last_acknowledged_at: row.last_acknowledged_at,
            conditions,
        }
    }
}

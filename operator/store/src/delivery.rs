//! How far each derived index has been told, and which replica tells it.
//!
//! The lease saves work: two replicas that both deliver would tell an index everything twice, which a
//! receiver takes in its stride. The database's clock writes it and judges it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Store, StoreError, row};

/// Characters of an error that are kept: a sentence and the beginning of what the receiver said.
const MAX_ERROR_CHARS: usize = 500;

/// Whether event `o` is for index `i`: the kinds it wants, and one of its watches, or any watch of its
/// namespace when it names none.
pub(crate) const MATCHES: &str = "(i.events is null or o.kind = any(i.events))
    and case when i.watches is null
        then exists (select from unnest(o.watches) as w where starts_with(w, i.namespace || '/'))
        else o.watches && i.watches end";

/// How far an index has come.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct IndexPosition {
    pub uid: Uuid,
    pub namespace: String,
    pub name: String,
    pub delivered_position: i64,
    pub acknowledged_position: i64,
    /// Tries of the oldest event that is not acknowledged.
    pub attempts: i32,
    pub last_error: Option<String>,
    pub retry_at: Option<DateTime<Utc>>,
}

/// An event that an index is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Deliverable {
    pub position: i64,
    /// Events of one resource go out one after another. None: about no single resource.
    pub resource_id: Option<Uuid>,
}

/// Events for an index, and how far the reading has come.
#[derive(Debug, Clone)]
pub struct Deliverables {
    pub events: Vec<Deliverable>,
    /// Everything up to here that is not among the events is not for this index.
    pub through: i64,
}

/// What an index's oldest unacknowledged event met with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFailure {
    pub attempts: u32,
    pub error: String,
    pub retry_in: Duration,
}

const INDEX_COLUMNS: &str = "i.uid, i.namespace, i.name, i.delivered_position, i.acknowledged_position, i.attempts, \
     i.last_error, i.retry_at";

impl Store {
    /// All indexes that exist, by name.
    pub async fn load_indexes(&self) -> Result<Vec<IndexPosition>, StoreError> {
        let sql = format!(
            "select {INDEX_COLUMNS} from derived_index i where i.deleted_at is null order by i.namespace, i.name"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .fetch_all(self.pool())
            .await?)
    }

    /// One index. None: not published yet, or deleted.
    pub async fn load_index(&self, index: Uuid) -> Result<Option<IndexPosition>, StoreError> {
        let sql = format!(
            "select {INDEX_COLUMNS} from derived_index i where i.uid = $1 and i.deleted_at is null"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(index)
            .fetch_optional(self.pool())
            .await?)
    }

    /// Takes or renews the lease of an index; false while another replica holds it.
    pub async fn claim_delivery(&self, index: Uuid, ttl: Duration) -> Result<bool, StoreError> {
        let claimed: Option<bool> = sqlx::query_scalar(
            "insert into delivery_lease as l (index_uid, owner, expires_at)
             values ($1, $2, clock_timestamp() + $3)
             on conflict (index_uid) do update set owner = excluded.owner, expires_at = excluded.expires_at
             where l.owner = excluded.owner or l.expires_at <= clock_timestamp()
             returning true",
        )
        .bind(index)
        .bind(self.replica())
        .bind(row::interval(ttl))
        .fetch_optional(self.pool())
        .await?;
        Ok(claimed.is_some())
    }

    /// Lets the lease go, so that another replica need not wait for its end.
    pub async fn release_delivery(&self, index: Uuid) -> Result<(), StoreError> {
        sqlx::query("update delivery_lease set expires_at = clock_timestamp() where index_uid = $1 and owner = $2")
            .bind(index)
            .bind(self.replica())
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Lets every lease go, whoever holds it: for a database that only one process uses, after a
    /// process before it was killed.
    pub async fn release_all_deliveries(&self) -> Result<u64, StoreError> {
        let released = sqlx::query("update delivery_lease set expires_at = clock_timestamp() where expires_at > clock_timestamp()")
            .execute(self.pool())
            .await?;
        Ok(released.rows_affected())
    }

    /// What is to be told to the index after `after`, oldest first, at most `limit`.
    pub async fn deliverables_after(
        &self,
        index: Uuid,
        after: i64,
        limit: u32,
    ) -> Result<Deliverables, StoreError> {
        // The head first: whatever is committed later has a higher position (see `outbox`).
        let head = self.outbox_head().await?;
        if head <= after {
            return Ok(Deliverables {
                events: Vec::new(),
                through: after,
            });
        }
        let sql = format!(
            "select o.position, o.resource_id from outbox o join derived_index i on i.uid = $1
             where o.position > $2 and o.position <= $3 and {MATCHES}
             order by o.position limit $4"
        );
        let events: Vec<Deliverable> = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(index)
            .bind(after)
            .bind(head)
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await?;
        let through = match events.last() {
            Some(last) if events.len() == limit as usize => last.position,
            _ => head,
        };
        Ok(Deliverables { events, through })
    }

    /// Everything up to `position` was sent at least once.
    pub async fn record_delivered(&self, index: Uuid, position: i64) -> Result<(), StoreError> {
        sqlx::query("update derived_index set delivered_position = $2 where uid = $1 and delivered_position < $2")
            .bind(index)
            .bind(position)
            .execute(self.pool())
            .await?;
        Ok(())
    }

    /// Everything for the index up to `position` is confirmed. `told`: something was confirmed, not
    /// only skipped because it is not for this index. Never goes back.
    pub async fn record_acknowledged(
        &self,
        index: Uuid,
        position: i64,
        told: bool,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "update derived_index
             set acknowledged_position = $2, delivered_position = greatest(delivered_position, $2),
                 attempts = 0, last_error = null, retry_at = null,
                 last_acknowledged_at = case when $3 then clock_timestamp() else last_acknowledged_at end
             where uid = $1 and acknowledged_position < $2",
        )
        .bind(index)
        .bind(position)
        .bind(told)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// The oldest event that is not confirmed has failed again. Only the replica that holds the lease
    /// has a word in it.
    pub async fn record_failure(
        &self,
        index: Uuid,
        failure: &DeliveryFailure,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "update derived_index set attempts = $2, last_error = $3, retry_at = clock_timestamp() + $4
             where uid = $1 and exists (
                 select from delivery_lease l
                 where l.index_uid = $1 and l.owner = $5 and l.expires_at > clock_timestamp())",
        )
        .bind(index)
        .bind(i32::try_from(failure.attempts).unwrap_or(i32::MAX))
        .bind(clipped(&failure.error))
        .bind(row::interval(failure.retry_in))
        .bind(self.replica())
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// What was in the way of telling the index at all is not any more; failed tries stay as they are.
    pub async fn clear_failure(&self, index: Uuid) -> Result<(), StoreError> {
        sqlx::query(
            "update derived_index set last_error = null, retry_at = null
             where uid = $1 and attempts = 0 and last_error is not null",
        )
        .bind(index)
        .execute(self.pool())
        .await?;
        Ok(())
    }

    /// For each index this replica delivers to: the age of the oldest event not confirmed.
    pub(crate) async fn outbox_lags(&self) -> Result<Vec<(String, String, f64)>, StoreError> {
        let sql = format!(
            "select i.namespace, i.name, coalesce(extract(epoch from clock_timestamp() - (
                 select o.created_at from outbox o
                 where o.position > i.acknowledged_position and {MATCHES} order by o.position limit 1)), 0)::float8
             from derived_index i
             join delivery_lease l on l.index_uid = i.uid and l.owner = $1 and l.expires_at > clock_timestamp()
             where i.deleted_at is null"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(self.replica())
            .fetch_all(self.pool())
            .await?)
    }
}

/// One line of bounded length, without characters that would steer a terminal.
fn clipped(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_ERROR_CHARS)
        .collect()
}

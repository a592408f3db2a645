//! A resource's accepted versions and the receipts of its reads, newest first.

use chrono::{DateTime, Utc};
use fencepost_views::{Page, Receipt, Version};
use sqlx::FromRow;
use uuid::Uuid;

use super::shown::digest;
use super::{PageSize, Queries, QueryError, cursor};

#[derive(FromRow)]
struct VersionRow {
    generation: i64,
    ordinal: i64,
    digest: Vec<u8>,
    previous_digest: Option<Vec<u8>>,
    mime_type: Option<String>,
    size: i64,
    accepted_at: DateTime<Utc>,
    trigger: String,
    server_version: String,
    subject: String,
    content_kept: bool,
}

#[derive(FromRow)]
pub(super) struct ReceiptRow {
    request_id: Uuid,
    generation: i64,
    pub(super) ordinal: i64,
    trigger: String,
    pub(super) issued_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
    outcome: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
    digest: Option<Vec<u8>>,
}

impl Queries {
    /// One page of versions; `None` for an unknown resource. Digests only: they stay readable when
    /// the permission is gone, so that what was told can be traced.
    pub async fn versions(
        &self,
        resource: Uuid,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Option<Page<Version>>, QueryError> {
        let after: Option<i64> = cursor::decode(after)?;
        let mut lent = self.connection().await?;
        let rows: Vec<VersionRow> = sqlx::query_as(
            "select v.generation, v.ordinal, v.digest, v.previous_digest, v.mime_type, v.size, v.accepted_at, \
             v.trigger, v.server_version, sub.name as subject, v.content_kept \
             from resource_version v join resource r on r.id = v.resource_id join subject sub on sub.uid = r.subject_uid \
             where v.resource_id = $1 and v.ordinal < $2 order by v.ordinal desc limit $3",
        )
        .bind(resource)
        .bind(after.unwrap_or(i64::MAX))
        .bind(size.fetch())
        .fetch_all(lent.get())
        .await?;
        if rows.is_empty() && !Self::knows(&mut lent, resource).await? {
            return Ok(None);
        }
        Ok(Some(size.cut(rows, |row| row.ordinal, Version::from)))
    }

    /// One page of receipts, reads in flight among them; `None` for an unknown resource.
    pub async fn receipts(
        &self,
        resource: Uuid,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Option<Page<Receipt>>, QueryError> {
        let after: Option<i64> = cursor::decode(after)?;
        let mut lent = self.connection().await?;
        let rows: Vec<ReceiptRow> = sqlx::query_as(
            "select request_id, generation, ordinal, trigger, issued_at, finished_at, outcome, reason, detail, digest \
             from read where resource_id = $1 and ordinal < $2 order by ordinal desc limit $3",
        )
        .bind(resource)
        .bind(after.unwrap_or(i64::MAX))
        .bind(size.fetch())
        .fetch_all(lent.get())
        .await?;
        if rows.is_empty() && !Self::knows(&mut lent, resource).await? {
            return Ok(None);
        }
        Ok(Some(size.cut(rows, |row| row.ordinal, Receipt::from)))
    }
}

impl From<VersionRow> for Version {
    fn from(row: VersionRow) -> Self {
        Self {
            generation: row.generation,
            ordinal: row.ordinal,
            digest: digest(Some(row.digest)).unwrap_or_default(),
            previous_digest: digest(row.previous_digest),
            mime_type: row.mime_type,
            size: row.size,
            accepted_at: row.accepted_at,
            trigger: row.trigger,
            server_version: row.server_version,
            subject: row.subject,
            content_kept: row.content_kept,
        }
    }
}

impl From<ReceiptRow> for Receipt {
    fn from(row: ReceiptRow) -> Self {
        Self {
            request_id: row.request_id.to_string(),
            generation: row.generation,
            ordinal: row.ordinal,
            trigger: row.trigger,
            issued_at: row.issued_at,
            finished_at: row.finished_at,
            outcome: row.outcome,
            reason: row.reason,
            detail: row.detail,
            digest: digest(row.digest),
        }
    }
}

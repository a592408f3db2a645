//! The accepted content of a resource, and what a reader must know of it.

use chrono::{DateTime, Utc};
use fencepost_ledger::Digest;
use sqlx::FromRow;
use uuid::Uuid;

use super::shown::{digest, reason, stale, state, withheld};
use super::{Queries, QueryError};

/// What was asked for, with everything that qualifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub state: String,
    pub generation: u64,
    pub ordinal: u64,
    pub digest: Option<String>,
    pub mime_type: Option<String>,
    pub confirmed_at: Option<DateTime<Utc>>,
    pub stale_after: Option<DateTime<Utc>>,
    pub stale: bool,
    pub reason: Option<String>,
    pub bytes: Bytes,
}

/// The bytes, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bytes {
    Stored(Vec<u8>),
    /// The reader has this digest already.
    Known,
    /// The permission was withdrawn.
    Revoked,
    Tombstoned,
    /// No read has been accepted yet.
    NothingAccepted,
    /// `content.store` is false, or was when the version was accepted.
    NotStored,
}

#[derive(FromRow)]
#[expect(clippy::struct_excessive_bools, reason = "columns of one row")]
struct Row {
    state: String,
    generation: i64,
    ordinal: i64,
    digest: Option<Vec<u8>>,
    mime_type: Option<String>,
    confirmed_at: Option<DateTime<Utc>>,
    stale_after: Option<DateTime<Utc>>,
    stale: bool,
    reason: Option<String>,
    revoked: bool,
    tombstoned: bool,
    known: bool,
    bytes: Option<Vec<u8>>,
}

impl Queries {
    /// The content that is current, with the permission judged by the statement that reads the bytes.
    /// `known`: digests that the reader has; their bytes are not fetched.
    pub async fn content(
        &self,
        resource: Uuid,
        known: &[Digest],
    ) -> Result<Option<Content>, QueryError> {
        let known: Vec<&[u8]> = known
            .iter()
            .map(|digest| digest.as_bytes().as_slice())
            .collect();
        let mut lent = self.connection().await?;
        let row: Option<Row> = sqlx::query_as(concat!(
            "select ",
            state!(),
            " as state, r.generation, r.ordinal, r.digest, coalesce(c.mime_type, r.mime_type) as mime_type, \
             r.confirmed_at, r.confirmed_at + r.max_staleness as stale_after, ",
            stale!(),
            " as stale, ",
            reason!(),
            " as reason, ",
            withheld!(),
            " as revoked, r.presence = 'TOMBSTONED' as tombstoned, \
             coalesce(c.digest = any($2), false) as known, \
             case when ",
            withheld!(),
            " or r.presence = 'TOMBSTONED' or c.digest = any($2) then null else c.bytes end as bytes \
             from resource r join subject sub on sub.uid = r.subject_uid \
             left join content c on c.server_uid = r.server_uid and c.subject_uid = r.subject_uid and c.digest = r.digest \
             where r.id = $1"
        ))
        .bind(resource)
        .bind(known)
        .fetch_optional(lent.get())
        .await?;
        Ok(row.map(Content::from))
    }
}

impl From<Row> for Content {
    fn from(row: Row) -> Self {
        let bytes = match row.bytes {
            _ if row.revoked => Bytes::Revoked,
            _ if row.tombstoned => Bytes::Tombstoned,
            _ if row.known => Bytes::Known,
            Some(bytes) => Bytes::Stored(bytes),
            None if row.digest.is_none() => Bytes::NothingAccepted,
            None => Bytes::NotStored,
        };
        Self {
            state: row.state,
            generation: row.generation.unsigned_abs(),
            ordinal: row.ordinal.unsigned_abs(),
            digest: digest(row.digest),
            mime_type: row.mime_type,
            confirmed_at: row.confirmed_at,
            stale_after: row.stale_after,
            stale: row.stale,
            reason: row.reason,
            bytes,
        }
    }
}

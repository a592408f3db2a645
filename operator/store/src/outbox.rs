//! Reading the outbox: events in their order, as receivers see them.
//!
//! Positions are given out under an advisory lock that is held until the writer's commit, so they
//! become visible in their order: every position up to the highest visible one is committed. A reader
//! takes that head first and reads no further, and thus passes no transaction that is still open.
//!
//! What is content (the text, and the note of what changed in it) goes only to who may still see it:
//! once the subject's permission has been withdrawn since the event, it is absent, for good.

use chrono::{DateTime, Utc};
use fencepost_views::{EventData, OutboxEvent, Supersede};
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Store, StoreError, row};

/// Text in an event. A webhook's body of more than a few megabytes is refused by most receivers.
pub const MAX_EVENT_CONTENT: i32 = 1024 * 1024;

/// Events that one read answers at most.
pub const MAX_EVENTS: u32 = 500;

/// What a reader wants. What is given must all hold.
#[derive(Debug, Clone, Default)]
pub struct OutboxFilter {
    /// Namespace of the server.
    pub namespace: Option<String>,
    /// `namespace/name` of a server.
    pub server: Option<String>,
    /// `namespace/name` of a watch.
    pub watch: Option<String>,
    /// `resource.accepted`, ..., with or without `dev.fencepost.` before it.
    pub kind: Option<String>,
}

/// Events after a position, and how far the reading has come: pass `through` as the next `after`.
#[derive(Debug, Clone)]
pub struct OutboxPage {
    pub events: Vec<OutboxEvent>,
    pub through: i64,
    /// Whether there is more to read at once.
    pub more: bool,
}

/// How much of an event a receiver asked for.
#[derive(Debug, Clone, Copy)]
pub struct EventShape {
    pub content: bool,
    pub supersede: bool,
}

/// Columns of an event. `withheld`: the permission it was read under has been withdrawn since, also
/// when it was given back later: what is withheld once stays so, and a repeated try has the same body.
const COLUMNS: &str = "o.position, o.id, o.kind, o.namespace, o.server, o.subject, o.uri, o.epoch, o.generation, o.ordinal, \
     o.digest, o.previous_digest, o.mime_type, o.basis, o.created_at, o.supersede, o.supersede_done, \
     (s.uid is not null and (s.revoked or s.deleted_at is not null or s.epoch <> o.epoch)) as withheld";

const FROM: &str = "outbox o left join resource r on r.id = o.resource_id left join subject s on s.uid = r.subject_uid";

#[derive(sqlx::FromRow)]
struct Row {
    position: i64,
    id: Uuid,
    kind: String,
    namespace: String,
    server: String,
    subject: String,
    uri: String,
    epoch: i64,
    generation: i64,
    ordinal: i64,
    digest: Option<Vec<u8>>,
    previous_digest: Option<Vec<u8>>,
    mime_type: Option<String>,
    basis: Option<String>,
    created_at: DateTime<Utc>,
    supersede: Option<Json<Supersede>>,
    supersede_done: bool,
    withheld: bool,
}

impl Row {
    fn event(self, shape: EventShape, content: Option<String>) -> Result<OutboxEvent, StoreError> {
        let word = |bytes: Option<Vec<u8>>| -> Result<Option<String>, StoreError> {
            bytes
                .map(|bytes| Ok(row::digest(&bytes)?.to_string()))
                .transpose()
        };
        let supersede = self.supersede.filter(|_| shape.supersede && !self.withheld);
        Ok(OutboxEvent {
            specversion: "1.0".to_owned(),
            id: self.id.to_string(),
            source: format!("/{}/{}", self.namespace, self.server),
            kind: format!("dev.fencepost.{}", self.kind),
            subject: self.uri.clone(),
            time: self.created_at,
            datacontenttype: "application/json".to_owned(),
            data: EventData {
                position: self.position,
                epoch: self.epoch,
                server: self.server,
                namespace: self.namespace,
                subject: self.subject,
                uri: self.uri,
                generation: self.generation,
                ordinal: self.ordinal,
                digest: word(self.digest)?,
                previous_digest: word(self.previous_digest)?,
                mime_type: self.mime_type,
                content,
                supersede: supersede.map(|Json(note)| note),
                basis: self.basis,
            },
        })
    }
}

impl Store {
    /// The newest visible position; 0 before the first event.
    pub async fn outbox_head(&self) -> Result<i64, StoreError> {
        Ok(
            sqlx::query_scalar("select coalesce(max(position), 0) from outbox")
                .fetch_one(self.pool())
                .await?,
        )
    }

    /// Events after `after`, oldest first, at most `limit` of them. Never with content.
    pub async fn outbox_after(
        &self,
        after: i64,
        limit: u32,
        filter: &OutboxFilter,
    ) -> Result<OutboxPage, StoreError> {
        let limit = limit.clamp(1, MAX_EVENTS);
        let head = self.outbox_head().await?;
        let mut rows = self.page(after, head, limit, filter).await?;
        let unwritten: Vec<i64> = rows
            .iter()
            .filter(|row| !row.supersede_done)
            .map(|row| row.position)
            .collect();
        if !unwritten.is_empty() {
            self.write_supersedes(&unwritten).await?;
            // What was written, by us or by another reader, is what everybody gets.
            rows = self.page(after, head, limit, filter).await?;
        }
        let more = rows.len() == limit as usize;
        let through = match rows.last() {
            Some(last) if more => last.position,
            _ => head.max(after),
        };
        let shape = EventShape {
            content: false,
            supersede: true,
        };
        let events = rows
            .into_iter()
            .map(|row| row.event(shape, None))
            .collect::<Result<_, _>>()?;
        Ok(OutboxPage {
            events,
            through,
            more,
        })
    }

    /// One event as an index is told it: the same at each try, unless the permission was withdrawn in
    /// between. None: it is older than the outbox keeps.
    pub async fn outbox_event(
        &self,
        position: i64,
        shape: EventShape,
    ) -> Result<Option<OutboxEvent>, StoreError> {
        let mut row = self.row(position).await?;
        if shape.supersede && row.as_ref().is_some_and(|row| !row.supersede_done) {
            self.write_supersedes(&[position]).await?;
            row = self.row(position).await?;
        }
        let Some(row) = row else { return Ok(None) };
        let content = if shape.content && !row.withheld {
            self.content_of(position).await?
        } else {
            None
        };
        row.event(shape, content).map(Some)
    }

    async fn row(&self, position: i64) -> Result<Option<Row>, StoreError> {
        let sql = format!("select {COLUMNS} from {FROM} where o.position = $1");
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(position)
            .fetch_optional(self.pool())
            .await?)
    }

    async fn page(
        &self,
        after: i64,
        head: i64,
        limit: u32,
        filter: &OutboxFilter,
    ) -> Result<Vec<Row>, StoreError> {
        let sql = format!(
            "select {COLUMNS} from {FROM}
             where o.position > $1 and o.position <= $2
               and ($3::text is null or o.namespace = $3)
               and ($4::text is null or o.namespace || '/' || o.server = $4)
               and ($5::text is null or $5 = any(o.watches))
               and ($6::text is null or o.kind = $6)
             order by o.position limit $7"
        );
        let kind = filter
            .kind
            .as_deref()
            .map(|kind| kind.strip_prefix("dev.fencepost.").unwrap_or(kind));
        let rows = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(after)
            .bind(head)
            .bind(&filter.namespace)
            .bind(&filter.server)
            .bind(&filter.watch)
            .bind(kind)
            .bind(i64::from(limit))
            .fetch_all(self.pool())
            .await?;
        Ok(rows)
    }

    /// The stored text of the version that the event announces. The check of the permission stands in
    /// the same statement: between two statements it could be withdrawn. None: not kept, larger than
    /// an event carries, or not text.
    async fn content_of(&self, position: i64) -> Result<Option<String>, StoreError> {
        let bytes: Option<Vec<u8>> = sqlx::query_scalar(
            "select c.bytes from outbox o
             join resource r on r.id = o.resource_id
             join subject s on s.uid = r.subject_uid
             join content c on c.server_uid = r.server_uid and c.subject_uid = r.subject_uid and c.digest = o.digest
             where o.position = $1 and o.kind = 'resource.accepted' and octet_length(c.bytes) <= $2
               and not s.revoked and s.deleted_at is null and s.epoch = o.epoch",
        )
        .bind(position)
        .bind(MAX_EVENT_CONTENT)
        .fetch_optional(self.pool())
        .await?;
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }
}

//! Writes the supersede note of an event, once: each reader and each try then gets the same.
//!
//! A note compares the stored content of a version with that of its predecessor. It is written soon
//! after the event, while both are there; where one is not kept, the event has none, for good.

use chrono::{DateTime, SecondsFormat, Utc};
use fencepost_ledger::{content::is_json, supersede};
use fencepost_views::{Change, Supersede};
use serde_json::Value;

use crate::{Store, StoreError};

/// Events compared at a time: two contents of at most 256 KiB each, so 16 MiB.
const BATCH: usize = 32;
/// Larger content is not compared (the core's bound as well).
const MAX_COMPARED: i32 = 256 * 1024;

/// An event without its note, and the two contents where they are kept and may be seen.
#[derive(sqlx::FromRow)]
struct Unwritten {
    position: i64,
    uri: String,
    mime_type: Option<String>,
    created_at: DateTime<Utc>,
    new: Option<Vec<u8>>,
    old: Option<Vec<u8>>,
}

impl Store {
    /// Writes the notes of events after `after` that have none yet, at most `limit`, oldest first.
    /// Answers how far all notes are written: pass it as the next `after`.
    pub async fn write_pending_supersedes(
        &self,
        after: i64,
        limit: u32,
    ) -> Result<i64, StoreError> {
        let head = self.outbox_head().await?;
        // First versions and tombstones replace nothing that could be told apart line by line.
        sqlx::query(
            "update outbox set supersede_done = true
             where not supersede_done and position > $1 and position <= $2
               and (kind <> 'resource.accepted' or previous_digest is null)",
        )
        .bind(after)
        .bind(head)
        .execute(self.pool())
        .await?;
        let pending: Vec<i64> = sqlx::query_scalar(
            "select position from outbox
             where not supersede_done and position > $1 and position <= $2 order by position limit $3",
        )
        .bind(after)
        .bind(head)
        .bind(i64::from(limit))
        .fetch_all(self.pool())
        .await?;
        self.write_supersedes(&pending).await?;
        Ok(match pending.last() {
            Some(last) if pending.len() == limit as usize => *last,
            _ => head.max(after),
        })
    }

    /// Writes the notes of these events, where they are not written yet.
    pub(crate) async fn write_supersedes(&self, positions: &[i64]) -> Result<(), StoreError> {
        for batch in positions.chunks(BATCH) {
            let unwritten: Vec<Unwritten> = sqlx::query_as(
                "select o.position, o.uri, o.mime_type, o.created_at, n.bytes as new, p.bytes as old
                 from outbox o
                 left join resource r on r.id = o.resource_id and o.kind = 'resource.accepted'
                 left join subject s on s.uid = r.subject_uid
                   and not s.revoked and s.deleted_at is null and s.epoch = o.epoch
                 left join content n on n.server_uid = r.server_uid and n.subject_uid = s.uid
                   and n.digest = o.digest and octet_length(n.bytes) <= $2
                 left join content p on p.server_uid = r.server_uid and p.subject_uid = s.uid
                   and p.digest = o.previous_digest and octet_length(p.bytes) <= $2
                 where o.position = any($1) and not o.supersede_done
                 order by o.position",
            )
            .bind(batch)
            .bind(MAX_COMPARED)
            .fetch_all(self.pool())
            .await?;
            // Comparing is work for a processor, not for the runtime's thread.
            let (positions, notes): (Vec<i64>, Vec<Option<String>>) =
                tokio::task::spawn_blocking(move || {
                    unwritten
                        .into_iter()
                        .map(|event| (event.position, note(event)))
                        .unzip()
                })
                .await
                .map_err(|_| StoreError::corrupt("two contents to compare"))?;
            // In the order of positions, as everybody locks them.
            sqlx::query(
                "with given as (
                     select * from unnest($1::bigint[], $2::text[]) as t (position, note)
                 ), locked as (
                     select o.position from outbox o join given using (position)
                     where not o.supersede_done order by o.position for no key update of o
                 )
                 update outbox o set supersede = given.note::jsonb, supersede_done = true
                 from given join locked using (position)
                 where o.position = given.position and not o.supersede_done",
            )
            .bind(positions)
            .bind(notes)
            .execute(self.pool())
            .await?;
        }
        Ok(())
    }
}

/// The note as JSON text. None when one of the contents is not there or is not text.
fn note(event: Unwritten) -> Option<String> {
    let (old, new) = (
        String::from_utf8(event.old?).ok()?,
        String::from_utf8(event.new?).ok()?,
    );
    let json = event.mime_type.as_deref().is_some_and(is_json);
    let since = event.created_at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let note = supersede::note(&event.uri, json, &old, &new, &since)?;
    let changes = note.changes.into_iter().map(|change| Change {
        path: change.path.replace('\0', REPLACEMENT),
        old: change.old.map(storable),
        new: change.new.map(storable),
    });
    let note = Supersede {
        text: note.text.replace('\0', REPLACEMENT),
        changes: changes.collect(),
    };
    serde_json::to_string(&note).ok()
}

/// Stands for NUL, which Postgres keeps in no text.
const REPLACEMENT: &str = "\u{fffd}";

fn storable(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace('\0', REPLACEMENT)),
        Value::Array(items) => items.into_iter().map(storable).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| (key.replace('\0', REPLACEMENT), storable(value)))
            .collect(),
        other => other,
    }
}

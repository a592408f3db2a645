//! Stored versions as text: one for a diff, two for the note between them.
//!
//! The permission is judged by the statement that reads the bytes. Versions of a tombstoned resource
//! stay readable: they are its history, and `content` is what says that it is gone.

use chrono::{DateTime, SecondsFormat, Utc};
use fencepost_ledger::{content::is_json, supersede};
use fencepost_views::{Change, ContentText, Supersede};
use sqlx::FromRow;
use uuid::Uuid;

use super::shown::{digest, withheld};
use super::{Queries, QueryError};

/// Bytes of text answered at most; also what the note compares at most (`supersede::note`).
const MAX_TEXT_BYTES: i32 = 256 * 1024;

/// A version's text, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum TextAnswer {
    Text(ContentText),
    Revoked,
    /// The version exists; its bytes are not kept.
    NotKept,
    NoSuchVersion,
    NoSuchResource,
}

/// The note between two versions, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum SupersedeAnswer {
    /// `None`: not text, or too large to compare.
    Note(Option<Supersede>),
    Revoked,
    NotKept(i64),
    NoSuchVersion(i64),
    NoSuchResource,
}

#[derive(FromRow)]
struct Row {
    ordinal: Option<i64>,
    digest: Option<Vec<u8>>,
    mime_type: Option<String>,
    size: Option<i64>,
    accepted_at: Option<DateTime<Utc>>,
    uri: String,
    revoked: bool,
    /// At most `MAX_TEXT_BYTES`.
    head: Option<Vec<u8>>,
    whole: Option<bool>,
}

impl Queries {
    /// The text of one version.
    pub async fn version_text(
        &self,
        resource: Uuid,
        ordinal: i64,
    ) -> Result<TextAnswer, QueryError> {
        let mut rows = self.heads(resource, &[ordinal]).await?;
        let Some(row) = rows.pop() else {
            return Ok(TextAnswer::NoSuchResource);
        };
        if row.revoked {
            return Ok(TextAnswer::Revoked);
        }
        if row.ordinal.is_none() {
            return Ok(TextAnswer::NoSuchVersion);
        }
        let (Some(head), Some(whole)) = (row.head, row.whole) else {
            return Ok(TextAnswer::NotKept);
        };
        let text = text(head, whole);
        Ok(TextAnswer::Text(ContentText {
            ordinal,
            digest: digest(row.digest).unwrap_or_default(),
            mime_type: row.mime_type,
            truncated: text.is_some() && !whole,
            text,
            size: row.size.unwrap_or_default(),
        }))
    }

    /// What changed from one version to another, in the words of the outbox's notes.
    pub async fn supersede(
        &self,
        resource: Uuid,
        from: i64,
        to: i64,
    ) -> Result<SupersedeAnswer, QueryError> {
        let rows = self.heads(resource, &[from, to]).await?;
        let Some(first) = rows.first() else {
            return Ok(SupersedeAnswer::NoSuchResource);
        };
        if first.revoked {
            return Ok(SupersedeAnswer::Revoked);
        }
        let find = |ordinal| rows.iter().find(|row| row.ordinal == Some(ordinal));
        let Some(old) = find(from) else {
            return Ok(SupersedeAnswer::NoSuchVersion(from));
        };
        let Some(new) = find(to) else {
            return Ok(SupersedeAnswer::NoSuchVersion(to));
        };
        let Some(old_bytes) = &old.head else {
            return Ok(SupersedeAnswer::NotKept(from));
        };
        let Some(new_bytes) = &new.head else {
            return Ok(SupersedeAnswer::NotKept(to));
        };
        if old.whole != Some(true) || new.whole != Some(true) {
            return Ok(SupersedeAnswer::Note(None));
        }
        let (Ok(old_text), Ok(new_text)) = (
            std::str::from_utf8(old_bytes),
            std::str::from_utf8(new_bytes),
        ) else {
            return Ok(SupersedeAnswer::Note(None));
        };
        let json = |row: &Row| row.mime_type.as_deref().is_some_and(is_json);
        let since = new
            .accepted_at
            .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
            .unwrap_or_default();
        let note = supersede::note(&new.uri, json(old) && json(new), old_text, new_text, &since);
        Ok(SupersedeAnswer::Note(note.map(|note| {
            Supersede {
                text: note.text,
                changes: note
                    .changes
                    .into_iter()
                    .map(|change| Change {
                        path: change.path,
                        old: change.old,
                        new: change.new,
                    })
                    .collect(),
            }
        })))
    }

    /// A row for each version that exists; one without an ordinal when the resource has none of them.
    async fn heads(&self, resource: Uuid, ordinals: &[i64]) -> Result<Vec<Row>, QueryError> {
        let mut lent = self.connection().await?;
        Ok(sqlx::query_as(concat!(
            "select v.ordinal, v.digest, v.mime_type, v.size, v.accepted_at, r.uri, ",
            withheld!(),
            " as revoked, \
             case when not ",
            withheld!(),
            " and v.content_kept then substring(c.bytes from 1 for $3) end as head, \
             octet_length(c.bytes) <= $3 as whole \
             from resource r join subject sub on sub.uid = r.subject_uid \
             left join resource_version v on v.resource_id = r.id and v.ordinal = any($2) \
             left join content c on c.server_uid = r.server_uid and c.subject_uid = r.subject_uid \
              and c.digest = v.digest \
             where r.id = $1"
        ))
        .bind(resource)
        .bind(ordinals)
        .bind(MAX_TEXT_BYTES)
        .fetch_all(lent.get())
        .await?)
    }
}

/// UTF-8 text, or none. A cut may fall into a character: what is left of it goes.
fn text(mut head: Vec<u8>, whole: bool) -> Option<String> {
    if !whole
        && let Err(error) = std::str::from_utf8(&head)
        && error.error_len().is_none()
    {
        head.truncate(error.valid_up_to());
    }
    String::from_utf8(head).ok()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn a_cut_within_a_character_leaves_text() {
        let mut cut = "grün".as_bytes().to_vec();
        cut.truncate(3);
        assert_eq!(text(cut.clone(), false).as_deref(), Some("gr"));
        assert_eq!(text(cut, true), None);
        assert_eq!(text(vec![0xff, 0xfe], false), None);
    }
}

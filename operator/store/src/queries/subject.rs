//! Subjects: on whose authority resources are read, and whether that still holds.

use chrono::{DateTime, Utc};
use fencepost_views::{Condition, ObjectRef, Page, Subject};
use sqlx::FromRow;
use uuid::Uuid;

use super::{PageSize, Queries, QueryError, cursor};

#[derive(FromRow)]
struct Row {
    uid: Uuid,
    namespace: String,
    name: String,
    anonymous: bool,
    epoch: i64,
    revoked: bool,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

impl Queries {
    /// One page of the subjects that are declared now, by name.
    pub async fn subjects(
        &self,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Subject>, QueryError> {
        let (namespace, name): (String, String) = cursor::decode(after)?.unwrap_or_default();
        let mut lent = self.connection().await?;
        let rows: Vec<Row> = sqlx::query_as(
            "select uid, namespace, name, anonymous, epoch, revoked, revoked_at, last_used_at, created_at \
             from subject where deleted_at is null and (namespace, name) > ($1, $2) \
             order by namespace, name limit $3",
        )
        .bind(namespace)
        .bind(name)
        .bind(size.fetch())
        .fetch_all(lent.get())
        .await?;
        Ok(size.cut(
            rows,
            |row| (row.namespace.clone(), row.name.clone()),
            Subject::from,
        ))
    }
}

impl From<Row> for Subject {
    fn from(row: Row) -> Self {
        let revoked = Condition {
            kind: "Revoked".to_owned(),
            reason: "REVOKED".to_owned(),
            message: "The permission was withdrawn: no content of this subject is answered."
                .to_owned(),
            since: row.revoked_at.unwrap_or(row.created_at),
        };
        Self {
            object: ObjectRef {
                namespace: row.namespace,
                name: row.name,
                uid: row.uid.to_string(),
            },
            epoch: row.epoch,
            revoked: row.revoked,
            anonymous: row.anonymous,
            last_used_at: row.last_used_at,
            conditions: if row.revoked {
                vec![revoked]
            } else {
                Vec::new()
            },
        }
    }
}

//! The picture of a resource's reads: bars, marks, and the watermark before them.

use chrono::{DateTime, TimeDelta, Utc};
use fencepost_views::{Mark, Receipt, Timeline};
use sqlx::FromRow;
use uuid::Uuid;

use super::{Queries, QueryError, history::ReceiptRow};

/// Bars and marks drawn at most: more than the pixels of a wide screen can tell apart.
const MAX_DRAWN: usize = 500;

#[derive(FromRow)]
struct MarkRow {
    at: DateTime<Utc>,
    kind: String,
    generation: i64,
    detail: Option<String>,
}

impl Queries {
    /// The last `range` of a resource's life; `None` for an unknown resource.
    pub async fn timeline(
        &self,
        resource: Uuid,
        range: TimeDelta,
    ) -> Result<Option<Timeline>, QueryError> {
        let mut lent = self.connection().await?;
        if !Self::knows(&mut lent, resource).await? {
            return Ok(None);
        }
        let to: DateTime<Utc> = sqlx::query_scalar("select now()")
            .fetch_one(lent.get())
            .await?;
        let mut from = to.checked_sub_signed(range).unwrap_or(to);
        let fetched = MAX_DRAWN as i64 + 1;
        // Ordinals rise with the issue time, so the newest by ordinal bound the walk before the range
        // narrows it. A read that reaches into the range belongs to it.
        let mut reads: Vec<ReceiptRow> = sqlx::query_as(
            "select request_id, generation, ordinal, trigger, issued_at, finished_at, outcome, reason, detail, digest \
             from (select request_id, generation, ordinal, trigger, issued_at, finished_at, outcome, reason, detail, \
                   digest from read where resource_id = $1 order by ordinal desc limit $3) newest \
             where issued_at >= $2 or coalesce(finished_at, 'infinity') >= $2 order by ordinal desc",
        )
        .bind(resource)
        .bind(from)
        .bind(fetched)
        .fetch_all(lent.get())
        .await?;
        let mut marks: Vec<MarkRow> = sqlx::query_as(
            "select at, kind, generation, detail from mark where resource_id = $1 and at >= $2 \
             order by at desc, id desc limit $3",
        )
        .bind(resource)
        .bind(from)
        .bind(fetched)
        .fetch_all(lent.get())
        .await?;
        let truncated = reads.len() > MAX_DRAWN || marks.len() > MAX_DRAWN;
        reads.truncate(MAX_DRAWN);
        marks.truncate(MAX_DRAWN);
        if truncated {
            // What is drawn begins where both are complete.
            let begin =
                |full: bool, oldest: Option<DateTime<Utc>>| oldest.filter(|_| full).unwrap_or(from);
            from = begin(
                reads.len() == MAX_DRAWN,
                reads.last().map(|read| read.issued_at),
            )
            .max(begin(
                marks.len() == MAX_DRAWN,
                marks.last().map(|mark| mark.at),
            ));
        }
        let watermark_before: Option<i64> = sqlx::query_scalar(
            "select ordinal from read where resource_id = $1 and outcome in ('accepted', 'unchanged') \
             and finished_at < $2 order by ordinal desc limit 1",
        )
        .bind(resource)
        .bind(from)
        .fetch_optional(lent.get())
        .await?;
        Ok(Some(Timeline {
            from,
            to,
            reads: reads.into_iter().rev().map(Receipt::from).collect(),
            marks: marks.into_iter().rev().map(Mark::from).collect(),
            watermark_before: watermark_before.unwrap_or_default(),
            truncated,
        }))
    }
}

impl From<MarkRow> for Mark {
    fn from(row: MarkRow) -> Self {
        Self {
            at: row.at,
            kind: row.kind,
            generation: row.generation,
            detail: row.detail,
        }
    }
}

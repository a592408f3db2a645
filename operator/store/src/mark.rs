//! Marks: notifications, gaps, openings and closes, for the picture of a resource's reads.
//!
//! A notification or gap also makes its resource dirty, unless a read issued after it has confirmed
//! the content by the time the mark is written.

use std::time::{Duration, Instant};

use fencepost_ledger::{Generation, ResourceId};
use uuid::Uuid;

use crate::{
    Store,
    error::{StoreError, Tries},
    row::{column, interval},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkKind {
    Notification,
    Gap,
    Opened,
    Closed,
    Tombstoned,
}

impl MarkKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Notification => "notification",
            Self::Gap => "gap",
            Self::Opened => "opened",
            Self::Closed => "closed",
            Self::Tombstoned => "tombstoned",
        }
    }
}

/// One mark. Its time is an age: the database's clock makes a time of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkRow {
    pub resource: ResourceId,
    pub age: Duration,
    pub kind: MarkKind,
    pub generation: Generation,
    pub detail: Option<String>,
}

impl Store {
    /// Writes marks, in one statement.
    pub async fn mark(&self, marks: &[MarkRow]) -> Result<(), StoreError> {
        if marks.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
        let ids: Vec<Uuid> = marks.iter().map(|m| m.resource.get()).collect();
        let kinds: Vec<&str> = marks.iter().map(|m| m.kind.as_str()).collect();
        let generations: Vec<i64> = marks.iter().map(|m| column(m.generation.get())).collect();
        let details: Vec<Option<&str>> = marks.iter().map(|m| m.detail.as_deref()).collect();
        let mut tries = Tries::default();
        loop {
            let mut connection = match self.pool().acquire().await.map_err(StoreError::from) {
                Ok(connection) => connection,
                Err(error) if tries.again(&error).await => continue,
                Err(error) => return Err(error),
            };
            // What was waited for a connection is age too. Otherwise a mark would look younger than the read that answered it.
            let waited = asked.elapsed();
            let ages: Vec<_> = marks.iter().map(|m| interval(m.age + waited)).collect();
            let done = sqlx::query(
                "with given as materialized (
                     select a.id, now() - a.age as at, a.kind, a.generation, a.detail, a.n
                     from unnest($1::uuid[], $2::interval[], $3::text[], $4::bigint[], $5::text[])
                         with ordinality as a (id, age, kind, generation, detail, n)
                 ), marked as (
                     insert into mark (resource_id, at, kind, generation, detail)
                     select g.id, g.at, g.kind, g.generation, g.detail from given g order by g.n
                 ), pulses as (
                     select g.id, min(g.at) as first, max(g.at) as last from given g
                     where g.kind in ('notification', 'gap') group by g.id
                 ), locked as materialized (
                     select res.id from resource res where res.id in (select p.id from pulses p)
                     order by res.id for no key update
                 )
                 update resource res
                 -- Of several, the earliest that no confirmation is younger than.
                 set dirty_since = least(res.dirty_since,
                     case when res.confirmed_at >= p.first then p.last else p.first end)
                 from pulses p join locked using (id)
                 where res.id = p.id and (res.confirmed_at is null or res.confirmed_at < p.last)",
            )
            .bind(&ids)
            .bind(&ages)
            .bind(&kinds)
            .bind(&generations)
            .bind(&details)
            .execute(&mut *connection)
            .await
            .map_err(StoreError::from);
            drop(connection);
            match done {
                Err(error) if tries.again(&error).await => {}
                done => return done.map(|_| ()),
            }
        }
    }
}

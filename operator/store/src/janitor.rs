//! Removes what nobody needs any more, a bounded batch at a time, once a minute.
//!
//! What must hold: nothing goes that a version, a pending event or a chart still refers to; no batch
//! holds locks for long; a snapshot that somebody holds open only delays the vacuum behind it. Where a
//! scan begins is remembered, so that rows already dead are not walked again each minute.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Store, StoreError};

/// Often enough that a minute's garbage fits a few batches.
const EVERY: Duration = Duration::from_mins(1);
/// Rows of one statement: some milliseconds of locks.
const BATCH: i64 = 1000;
/// Batches of one kind in one sweep: 50,000 rows a minute is more than a stampede a minute leaves.
const BATCHES: usize = 50;
/// All old reads are looked at once in this time: most of them stay, as the newest of their resource.
const READS_AGAIN: Duration = Duration::from_hours(1);

/// How much a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub contents: u64,
    pub marks: u64,
    pub samples: u64,
    pub reads: u64,
    pub events: u64,
    /// Events among them that some index had not confirmed in 31 days.
    pub unconfirmed_events: u64,
}

/// Remembers where to begin.
pub struct Janitor {
    store: Store,
    /// Events up to here are gone.
    events_gone: i64,
    /// The last old read that was looked at in this walk over them.
    read_cursor: Option<(DateTime<Utc>, Uuid)>,
    next_walk: Instant,
}

/// Sweeps once a minute until `shutdown`.
pub async fn run(store: Store, shutdown: CancellationToken) {
    let mut janitor = Janitor::new(store);
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let Some(swept) = shutdown.run_until_cancelled(janitor.sweep()).await else {
            return;
        };
        match swept {
            Ok(swept) if swept.unconfirmed_events > 0 => tracing::warn!(
                events = swept.unconfirmed_events,
                "events older than 31 days were removed that an index had not confirmed; rebuild that index from the API"
            ),
            Ok(swept) if swept != Swept::default() => tracing::debug!(?swept, "swept"),
            Ok(_) => {}
            Err(error) => {
                tracing::info!(category = error.category(), %error, "the sweep waits for the next minute");
            }
        }
    }
}

impl Janitor {
    pub fn new(store: Store) -> Self {
        Self {
            store,
            events_gone: 0,
            read_cursor: None,
            next_walk: Instant::now(),
        }
    }

    /// One sweep over everything.
    pub async fn sweep(&mut self) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        self.events(&mut swept).await?;
        swept.contents = self.repeated(CONTENT).await?;
        swept.marks = self.repeated(MARKS).await?;
        swept.samples = self.repeated(SAMPLES).await?;
        swept.reads = self.reads().await?;
        Ok(swept)
    }

    async fn repeated(&self, statement: &'static str) -> Result<u64, StoreError> {
        let mut removed = 0;
        for _ in 0..BATCHES {
            let batch = sqlx::query(statement)
                .bind(BATCH)
                .execute(self.store.pool())
                .await?
                .rows_affected();
            removed += batch;
            if batch < BATCH.unsigned_abs() {
                break;
            }
        }
        Ok(removed)
    }

    async fn events(&mut self, swept: &mut Swept) -> Result<(), StoreError> {
        for _ in 0..BATCHES {
            let gone: Vec<(i64, bool)> = sqlx::query_as(EVENTS)
                .bind(BATCH)
                .bind(self.events_gone)
                .fetch_all(self.store.pool())
                .await?;
            swept.events += gone.len() as u64;
            swept.unconfirmed_events +=
                gone.iter().filter(|(_, confirmed)| !confirmed).count() as u64;
            self.events_gone = gone
                .iter()
                .map(|(position, _)| *position)
                .fold(self.events_gone, i64::max);
            if (gone.len() as i64) < BATCH {
                break;
            }
        }
        Ok(())
    }

    async fn reads(&mut self) -> Result<u64, StoreError> {
        let mut removed = 0;
        if Instant::now() < self.next_walk {
            return Ok(0);
        }
        for _ in 0..BATCHES {
            let (at, id) = self
                .read_cursor
                .unwrap_or((DateTime::<Utc>::UNIX_EPOCH, Uuid::nil()));
            let (looked_at, gone, last_at, last_id): (
                i64,
                i64,
                Option<DateTime<Utc>>,
                Option<Uuid>,
            ) = sqlx::query_as(READS)
                .bind(BATCH)
                .bind(at)
                .bind(id)
                .fetch_one(self.store.pool())
                .await?;
            removed += gone.unsigned_abs();
            self.read_cursor = last_at.zip(last_id);
            if looked_at < BATCH {
                self.read_cursor = None;
                self.next_walk = Instant::now() + READS_AGAIN;
                break;
            }
        }
        Ok(removed)
    }
}

/// Content that no version keeps, no supersede note waits for, and no index that gets content has
/// still to be told. Ten minutes of grace for the note and for a reader in between; a row that an
/// acceptance holds at this moment is passed over.
const CONTENT: &str = "
with needed as materialized (
    select o.digest from outbox o
    where o.digest is not null and o.position > (
        select min(i.acknowledged_position) from derived_index i where i.include_content and i.deleted_at is null)
    union
    select unnest(array[o.digest, o.previous_digest]) from outbox o where not o.supersede_done
), garbage as (
    select c.server_uid, c.subject_uid, c.digest from content c
    where c.touched_at < clock_timestamp() - interval '10 minutes'
      and not exists (
          select from resource_version v join resource r on r.id = v.resource_id
          where v.digest = c.digest and v.content_kept
            and r.server_uid = c.server_uid and r.subject_uid = c.subject_uid)
      and not exists (select from needed n where n.digest = c.digest)
    limit $1 for update of c skip locked
)
delete from content c using garbage g
where c.server_uid = g.server_uid and c.subject_uid = g.subject_uid and c.digest = g.digest";

const MARKS: &str = "
delete from mark where id in (
    select id from mark where at < clock_timestamp() - interval '7 days' order by at limit $1)";

const SAMPLES: &str = "
delete from sample where (at, replica) in (
    select at, replica from sample where at < clock_timestamp() - interval '31 days' order by at limit $1)";

/// Settled reads older than 7 days that no version came of and that are not among the newest 200 of
/// their resource: `verify` and the picture of reads want those.
const READS: &str = "
with looked_at as (
    select request_id, resource_id, ordinal, issued_at, outcome from read
    where issued_at < clock_timestamp() - interval '7 days' and (issued_at, request_id) > ($2, $3)
    order by issued_at, request_id limit $1
), gone as (
    delete from read d using looked_at l join resource r on r.id = l.resource_id
    where d.request_id = l.request_id and l.outcome is not null and l.ordinal <= r.last_issued_ordinal - 200
      and not exists (
          select from resource_version v where v.resource_id = l.resource_id and v.ordinal = l.ordinal)
    returning 1
), last as (
    select issued_at, request_id from looked_at order by issued_at desc, request_id desc limit 1
)
select (select count(*) from looked_at), (select count(*) from gone),
       (select issued_at from last), (select request_id from last)";

/// Events older than 7 days that every index has confirmed, and those older than 31 days. The newest
/// always stays: it is how readers know how far the outbox has come.
const EVENTS: &str = "
with confirmed as (
    select coalesce(min(acknowledged_position), 9223372036854775807) as position
    from derived_index where deleted_at is null
)
delete from outbox where position in (
    select o.position from outbox o, confirmed c
    where o.position > $2 and o.position < (select max(position) from outbox)
      and o.created_at < clock_timestamp() - interval '7 days'
      and (o.position <= c.position or o.created_at < clock_timestamp() - interval '31 days')
    order by o.position limit $1)
returning position, position <= (select position from confirmed)";

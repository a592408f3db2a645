//! What the status of a Kubernetes object says: counts of a watch's resources, a sample, and whether something is still open.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use fencepost_views::StateCount;
use sqlx::FromRow;
use uuid::Uuid;

use super::shown::{add_count, overdue, revoked, stale, state, unproven};
use super::{Queries, QueryError};

/// Resources shown of one watch.
const SAMPLE: i64 = 20;

/// Characters of a URI in a sample.
const URI_CHARS: i32 = 512;

/// What has become of a watch's resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchTally {
    pub states: Vec<StateCount>,
    /// Those that should follow their server: permitted, and not gone.
    pub following: i64,
    /// Those of them whose last invalidation is answered.
    pub converged: i64,
    /// Those of them that no read ever confirmed.
    pub unread: i64,
    /// Past their bound, or not confirmed by their last read.
    pub stale: i64,
    /// Acknowledged, and an audit found what nothing had announced.
    pub unproven: i64,
    /// Their digest changes on nearly every read.
    pub volatile: i64,
    /// A reason of those that are stale, the first by name.
    pub stale_reason: Option<String>,
    pub sample: Vec<SampledResource>,
}

/// One resource, as a sample.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SampledResource {
    /// Cut at 512 characters.
    pub uri: String,
    pub state: String,
    pub stale: bool,
    pub confirmed_at: Option<DateTime<Utc>>,
}

#[derive(FromRow)]
struct Sampled {
    watch: String,
    #[sqlx(flatten)]
    resource: SampledResource,
}

#[derive(FromRow)]
struct Group {
    watch: String,
    state: String,
    resources: i64,
    following: i64,
    converged: i64,
    unread: i64,
    stale: i64,
    unproven: i64,
    volatile: i64,
    stale_reason: Option<String>,
}

/// Whose generations are to be closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    Server(Uuid),
    Subject(Uuid),
    /// `namespace/name`.
    Watch(String),
}

impl Queries {
    /// The tallies of those watches, by `namespace/name`; one that has no resources yet has none.
    pub async fn watch_tallies(
        &self,
        watches: &[String],
    ) -> Result<HashMap<String, WatchTally>, QueryError> {
        let mut lent = self.connection().await?;
        let groups: Vec<Group> = sqlx::query_as(concat!(
            "select w.name as watch, ",
            state!(),
            " as state, count(*) as resources, \
             count(*) filter (where r.presence <> 'TOMBSTONED' and not ",
            revoked!(),
            ") as following, \
             count(*) filter (where r.presence <> 'TOMBSTONED' and not ",
            revoked!(),
            " and r.confirmed_at is not null and r.dirty_since is null) as converged, \
             count(*) filter (where r.presence <> 'TOMBSTONED' and not ",
            revoked!(),
            " and r.confirmed_at is null) as unread, \
             count(*) filter (where ",
            overdue!(),
            ") as stale, \
             count(*) filter (where ",
            unproven!(),
            ") as unproven, \
             count(*) filter (where r.volatile) as volatile, \
             min(coalesce(r.stale_reason, 'PAST_MAX_STALENESS')) filter (where ",
            overdue!(),
            ") as stale_reason \
             from resource r join subject sub on sub.uid = r.subject_uid \
             cross join lateral unnest(r.watches) as w (name) \
             where r.watches && $1 and w.name = any($1) group by 1, 2"
        ))
        .bind(watches)
        .fetch_all(lent.get())
        .await?;
        let mut tallies: HashMap<String, WatchTally> = HashMap::new();
        for group in groups {
            let tally = tallies.entry(group.watch).or_default();
            add_count(&mut tally.states, group.state, group.resources);
            tally.following += group.following;
            tally.converged += group.converged;
            tally.unread += group.unread;
            tally.stale += group.stale;
            tally.unproven += group.unproven;
            tally.volatile += group.volatile;
            let reasons = [tally.stale_reason.take(), group.stale_reason];
            tally.stale_reason = reasons.into_iter().flatten().min();
        }
        let samples: Vec<Sampled> = sqlx::query_as(concat!(
                "select w.name as watch, s.uri, s.state, s.stale, s.confirmed_at from unnest($1::text[]) as w (name) \
                 cross join lateral ( \
                  select left(r.uri, $3) as uri, ",
                state!(),
                " as state, ",
                stale!(),
                " as stale, r.confirmed_at from resource r join subject sub on sub.uid = r.subject_uid \
                  where r.watches @> array[w.name] \
                  order by ",
                overdue!(),
                " desc, r.confirmed_at is null desc, r.uri collate \"C\" limit $2) s"
            ))
            .bind(watches)
            .bind(SAMPLE)
            .bind(URI_CHARS)
            .fetch_all(lent.get())
            .await?;
        for Sampled { watch, resource } in samples {
            tallies.entry(watch).or_default().sample.push(resource);
        }
        Ok(tallies)
    }

    /// Resources that are still open, or whose reads have no receipt yet.
    pub async fn still_open(&self, closing: &Closing) -> Result<i64, QueryError> {
        const OPEN: &str = "select count(*) from resource r where (r.subscription in \
             ('SUBSCRIBING', 'ACTIVE', 'UNSUBSCRIBING', 'UNSUBSCRIBE_UNKNOWN') \
             or exists (select from read d where d.resource_id = r.id and d.outcome is null)) and ";
        let mut lent = self.connection().await?;
        let query = |condition: &str| sqlx::AssertSqlSafe(format!("{OPEN}{condition}"));
        let count = match closing {
            Closing::Server(uid) => sqlx::query_scalar(query("r.server_uid = $1")).bind(uid),
            Closing::Subject(uid) => sqlx::query_scalar(query("r.subject_uid = $1")).bind(uid),
            Closing::Watch(name) => sqlx::query_scalar(query("r.watches @> array[$1]")).bind(name),
        };
        Ok(count.fetch_one(lent.get()).await?)
    }
}

//! Servers with their latest session of each subject, and how many resources are in which state.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use fencepost_views::{Condition, Page, Server, ServerRow, SessionView, StateCount};
use sqlx::FromRow;
use uuid::Uuid;

use super::shown::{add_count, digest, overdue, state};
use super::{Lent, PageSize, Queries, QueryError, cursor};

/// Sessions shown of one server; more subjects than this are told by the resources' list.
const MAX_SESSIONS: i64 = 100;

#[derive(FromRow)]
struct Row {
    uid: Uuid,
    namespace: String,
    name: String,
    address: String,
    protocol: String,
    era: Option<String>,
    protocol_version: Option<String>,
    server_name: Option<String>,
    server_version: Option<String>,
    capabilities: Option<serde_json::Value>,
    subscribe: Option<bool>,
    reason: Option<String>,
    message: Option<String>,
    reason_since: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    open_sessions: i64,
}

#[derive(FromRow)]
struct SessionRow {
    server_uid: Uuid,
    subject: String,
    generation: i64,
    era: Option<String>,
    opened_at: DateTime<Utc>,
    closed_at: Option<DateTime<Utc>>,
    close_reason: Option<String>,
    receipt_digest: Option<Vec<u8>>,
}

/// Resources of one server: by state, and how many of them are stale where somebody relies on them.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) resources: Vec<StateCount>,
    pub(super) stale: i64,
}

impl Queries {
    /// One page of the servers that are declared now, by name. `reads_per_hour` is 0: the ledger does
    /// not hold what the manifests cause.
    pub async fn servers(
        &self,
        size: PageSize,
        after: Option<&str>,
    ) -> Result<Page<Server>, QueryError> {
        let after: Option<(String, String)> = cursor::decode(after)?;
        let mut lent = self.connection().await?;
        let rows = server_rows(&mut lent, size.fetch(), after).await?;
        let uids: Vec<Uuid> = rows.iter().map(|row| row.uid).collect();
        let mut sessions: HashMap<Uuid, Vec<SessionView>> = HashMap::new();
        // The lease names the latest session generation of each (server, subject).
        let session_rows: Vec<SessionRow> = sqlx::query_as(
            "select wanted.uid as server_uid, latest.subject, latest.generation, latest.era, latest.opened_at, \
             latest.closed_at, latest.close_reason, latest.receipt_digest \
             from unnest($1::uuid[]) as wanted (uid) cross join lateral ( \
              select sub.namespace || '/' || sub.name as subject, s.generation, s.era, s.opened_at, s.closed_at, \
              s.close_reason, s.receipt_digest from session_lease l \
              join session s on s.server_uid = l.server_uid and s.subject_uid = l.subject_uid \
               and s.generation = l.session_generation \
              join subject sub on sub.uid = l.subject_uid where l.server_uid = wanted.uid \
              order by sub.namespace, sub.name, s.generation desc limit $2) latest",
        )
        .bind(&uids)
        .bind(MAX_SESSIONS)
        .fetch_all(lent.get())
        .await?;
        for row in session_rows {
            sessions
                .entry(row.server_uid)
                .or_default()
                .push(SessionView {
                    subject: row.subject,
                    session_generation: row.generation,
                    era: row.era,
                    opened_at: row.opened_at,
                    closed_at: row.closed_at,
                    close_reason: row.close_reason,
                    receipt_digest: digest(row.receipt_digest),
                });
        }
        let tallies = tallies(&mut lent, &uids).await?;
        let item = |row: Row| {
            let resources = tallies
                .get(&row.uid)
                .map(|tally| tally.resources.clone())
                .unwrap_or_default();
            let sessions = sessions.get(&row.uid).cloned().unwrap_or_default();
            Server {
                ready: row.ready(),
                conditions: row.conditions(),
                namespace: row.namespace,
                name: row.name,
                uid: row.uid.to_string(),
                address: row.address,
                protocol: row.protocol,
                era: row.era,
                protocol_version: row.protocol_version,
                server_name: row.server_name,
                server_version: row.server_version,
                capabilities: row.capabilities,
                subscribe: row.subscribe,
                sessions,
                resources,
                reads_per_hour: 0.0,
            }
        };
        Ok(size.cut(rows, |row| (row.namespace.clone(), row.name.clone()), item))
    }
}

/// The overview's rows: the first servers by name, and the tally of all resources of each.
pub(super) async fn overview_rows(lent: &mut Lent) -> Result<Vec<ServerRow>, QueryError> {
    let rows = server_rows(lent, i64::from(PageSize::MAX), None).await?;
    let uids: Vec<Uuid> = rows.iter().map(|row| row.uid).collect();
    let mut tallies = tallies(lent, &uids).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let tally = tallies.remove(&row.uid).unwrap_or_default();
            ServerRow {
                ready: row.ready(),
                namespace: row.namespace,
                name: row.name,
                era: row.era,
                sessions: row.open_sessions,
                resources: tally.resources,
                stale: tally.stale,
                reason: row.reason,
            }
        })
        .collect())
}

async fn server_rows(
    lent: &mut Lent,
    limit: i64,
    after: Option<(String, String)>,
) -> Result<Vec<Row>, QueryError> {
    let (namespace, name) = after.unwrap_or_default();
    Ok(sqlx::query_as(
        "select srv.uid, srv.namespace, srv.name, srv.address, srv.protocol, srv.era, srv.protocol_version, \
         srv.server_name, srv.server_version, srv.capabilities, srv.subscribe, srv.reason, srv.message, \
         srv.reason_since, srv.created_at, \
         (select count(*) from session s where s.server_uid = srv.uid and s.closed_at is null \
          and s.connected_at is not null) as open_sessions \
         from server srv where srv.deleted_at is null and (srv.namespace, srv.name) > ($1, $2) \
         order by srv.namespace, srv.name limit $3",
    )
    .bind(namespace)
    .bind(name)
    .bind(limit)
    .fetch_all(lent.get())
    .await?)
}

async fn tallies(lent: &mut Lent, servers: &[Uuid]) -> Result<HashMap<Uuid, Tally>, QueryError> {
    let rows: Vec<(Uuid, String, i64, i64)> = sqlx::query_as(concat!(
        "select r.server_uid, ",
        state!(),
        " as state, count(*), count(*) filter (where ",
        overdue!(),
        ") from resource r join subject sub on sub.uid = r.subject_uid where r.server_uid = any($1) group by 1, 2"
    ))
    .bind(servers)
    .fetch_all(lent.get())
    .await?;
    let mut tallies: HashMap<Uuid, Tally> = HashMap::new();
    for (server, state, count, stale) in rows {
        let tally = tallies.entry(server).or_default();
        add_count(&mut tally.resources, state, count);
        tally.stale += stale;
    }
    Ok(tallies)
}

impl Row {
    /// Connected for at least one subject, and nothing said against it.
    fn ready(&self) -> bool {
        self.reason.is_none() && self.open_sessions > 0
    }

    fn conditions(&self) -> Vec<Condition> {
        let unavailable = |reason: &String| Condition {
            kind: "ServerUnavailable".to_owned(),
            reason: reason.clone(),
            message: self.message.clone().unwrap_or_default(),
            since: self.reason_since.unwrap_or(self.created_at),
        };
        self.reason.iter().map(unavailable).collect()
    }
}

//! Resources: the filtered list in the order of their URIs, and one with its conditions.

use chrono::{DateTime, Utc};
use fencepost_views::{Condition, ObjectRef, Page, Resource, ResourceDetail, ResourceFilter};
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::shown::{
    digest, name_ref, object_name, reason, revoked, stale, state, state_condition, unproven,
};
use super::{PageSize, Queries, QueryError, cursor};

/// Text to search for, in characters: the longest that is still a search and not a list of URIs.
const MAX_SEARCH_CHARS: usize = 512;

/// Columns and joins of a shown resource.
macro_rules! shown_resource {
    ($more:expr) => {
        concat!(
            "select r.id, r.uri, srv.namespace as server_namespace, srv.name as server_name, srv.uid as server_uid, \
             sub.namespace as subject_namespace, sub.name as subject_name, sub.uid as subject_uid, r.watches, ",
            state!(),
            " as state, case when exists (select 1 from read q where q.resource_id = r.id and q.outcome is null) \
               then 'READ_PENDING' when r.dirty_since is not null then 'UPDATE_SEEN' else 'IDLE' end as refresh, \
             r.mode, r.cohort, r.generation, r.last_issued_ordinal, r.ordinal, r.digest, r.mime_type, r.size, \
             r.accepted_at, r.confirmed_at, r.confirmed_at + r.max_staleness as stale_after, ",
            stale!(),
            " as stale, ",
            reason!(),
            " as reason",
            $more,
            " from resource r join server srv on srv.uid = r.server_uid join subject sub on sub.uid = r.subject_uid"
        )
    };
}

#[derive(FromRow)]
struct Shown {
    id: Uuid,
    uri: String,
    server_namespace: String,
    server_name: String,
    server_uid: Uuid,
    subject_namespace: String,
    subject_name: String,
    subject_uid: Uuid,
    watches: Vec<String>,
    state: String,
    refresh: String,
    mode: String,
    cohort: bool,
    generation: i64,
    last_issued_ordinal: i64,
    ordinal: i64,
    digest: Option<Vec<u8>>,
    mime_type: Option<String>,
    size: Option<i64>,
    accepted_at: Option<DateTime<Utc>>,
    confirmed_at: Option<DateTime<Utc>>,
    stale_after: Option<DateTime<Utc>>,
    stale: bool,
    reason: Option<String>,
}

#[derive(FromRow)]
struct Detail {
    #[sqlx(flatten)]
    shown: Shown,
    max_staleness_seconds: f64,
    read_interval_seconds: f64,
    store_content: bool,
    close_ordinal: Option<i64>,
    session_generation: i64,
    volatile: bool,
    created_at: DateTime<Utc>,
    unannounced_since: Option<DateTime<Utc>>,
}

impl Queries {
    /// One page of the resources that the filter selects.
    pub async fn resources(&self, filter: &ResourceFilter) -> Result<Page<Resource>, QueryError> {
        let size = PageSize::new(filter.limit)?;
        let after: Option<(String, Uuid)> = cursor::decode(filter.after.as_deref())?;
        let mut query = QueryBuilder::new(concat!(shown_resource!(""), " where true"));
        if let Some(state) = &filter.state {
            query.push(" and ").push(state_condition(state)?);
        }
        if let Some(server) = &filter.server {
            let (namespace, name) = object_name("server", server)?;
            query
                .push(" and r.server_uid = any(array(select uid from server where namespace = ")
                .push_bind(namespace);
            query.push(" and name = ").push_bind(name).push("))");
        }
        if let Some(subject) = &filter.subject {
            let (namespace, name) = object_name("subject", subject)?;
            query
                .push(" and r.subject_uid = any(array(select uid from subject where namespace = ")
                .push_bind(namespace);
            query.push(" and name = ").push_bind(name).push("))");
        }
        if let Some(watch) = &filter.watch {
            object_name("watch", watch)?;
            query
                .push(" and r.watches @> array[")
                .push_bind(watch)
                .push("]");
        }
        if let Some(stale) = filter.stale {
            query.push(if stale {
                concat!(" and ", stale!())
            } else {
                concat!(" and not ", stale!())
            });
        }
        if let Some(q) = filter.q.as_deref().filter(|q| !q.is_empty()) {
            if q.chars().count() > MAX_SEARCH_CHARS {
                return Err(QueryError::bad(
                    "q",
                    format!("must be at most {MAX_SEARCH_CHARS} characters"),
                ));
            }
            query.push(" and r.uri ilike ").push_bind(contains(q));
        }
        if let Some((uri, id)) = after {
            query
                .push(r#" and (r.uri collate "C", r.id) > ("#)
                .push_bind(uri)
                .push(", ")
                .push_bind(id)
                .push(")");
        }
        query
            .push(r#" order by r.uri collate "C", r.id limit "#)
            .push_bind(size.fetch());
        let mut lent = self.connection().await?;
        let rows: Vec<Shown> = query.build_query_as().fetch_all(lent.get()).await?;
        Ok(size.cut(rows, |row| (row.uri.clone(), row.id), Resource::from))
    }

    /// One resource with what is abnormal about it.
    pub async fn resource(&self, id: Uuid) -> Result<Option<ResourceDetail>, QueryError> {
        let mut lent = self.connection().await?;
        let row: Option<Detail> = sqlx::query_as(concat!(
            shown_resource!(concat!(
                ", extract(epoch from r.max_staleness)::float8 as max_staleness_seconds, \
                 extract(epoch from r.read_interval)::float8 as read_interval_seconds, r.store_content, \
                 r.close_ordinal, r.session_generation, r.volatile, r.created_at, \
                 case when ",
                unproven!(),
                " and not ",
                revoked!(),
                " then (select min(v.accepted_at) from resource_version v \
                  where v.resource_id = r.id and v.generation = r.generation and v.trigger = 'Audit') end \
                 as unannounced_since"
            )),
            " where r.id = $1"
        ))
        .bind(id)
        .fetch_optional(lent.get())
        .await?;
        Ok(row.map(ResourceDetail::from))
    }

    /// Whether the ledger knows the id: tells an empty history from an unknown resource.
    pub(super) async fn knows(lent: &mut super::Lent, id: Uuid) -> Result<bool, QueryError> {
        Ok(
            sqlx::query_scalar("select exists (select 1 from resource where id = $1)")
                .bind(id)
                .fetch_one(lent.get())
                .await?,
        )
    }
}

/// The pattern for "contains this text", in which nothing of the text is a wildcard.
fn contains(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    pattern.push('%');
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

impl From<Shown> for Resource {
    fn from(row: Shown) -> Self {
        Self {
            id: row.id.to_string(),
            uri: row.uri,
            server: ObjectRef {
                namespace: row.server_namespace,
                name: row.server_name,
                uid: row.server_uid.to_string(),
            },
            subject: ObjectRef {
                namespace: row.subject_namespace,
                name: row.subject_name,
                uid: row.subject_uid.to_string(),
            },
            watches: row.watches.iter().map(|watch| name_ref(watch)).collect(),
            state: row.state,
            refresh: row.refresh,
            mode: row.mode,
            cohort: row.cohort,
            generation: row.generation,
            issued_ordinal: row.last_issued_ordinal,
            ordinal: row.ordinal,
            digest: digest(row.digest),
            mime_type: row.mime_type,
            size: row.size,
            accepted_at: row.accepted_at,
            confirmed_at: row.confirmed_at,
            stale_after: row.stale_after,
            stale: row.stale,
            reason: row.reason,
        }
    }
}

impl From<Detail> for ResourceDetail {
    fn from(row: Detail) -> Self {
        let conditions = conditions(&row);
        Self {
            conditions,
            max_staleness_seconds: row.max_staleness_seconds,
            read_interval_seconds: row.read_interval_seconds,
            stores_content: row.store_content,
            close_ordinal: row.close_ordinal,
            session_generation: (row.session_generation > 0).then_some(row.session_generation),
            resource: row.shown.into(),
        }
    }
}

fn conditions(row: &Detail) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let shown = &row.shown;
    if shown.stale && !matches!(shown.state.as_str(), "REVOKED" | "TOMBSTONED") {
        let reason = shown
            .reason
            .clone()
            .unwrap_or_else(|| "PAST_MAX_STALENESS".to_owned());
        let message = match (reason.as_str(), shown.confirmed_at) {
            ("PAST_MAX_STALENESS", _) => format!(
                "No read has confirmed the content within {} s. See the receipts for what became of the last ones.",
                row.max_staleness_seconds
            ),
            (_, None) => "No read has brought content yet.".to_owned(),
            _ => "The last read did not confirm the content; its receipt says why.".to_owned(),
        };
        // A bound that has passed is the moment; before that, nothing has confirmed it since.
        let since = match shown.stale_after {
            Some(bound) if reason == "PAST_MAX_STALENESS" => bound,
            _ => shown.confirmed_at.unwrap_or(row.created_at),
        };
        conditions.push(Condition {
            kind: "ContentStale".to_owned(),
            reason,
            message,
            since,
        });
    }
    if let Some(since) = row.unannounced_since {
        conditions.push(Condition {
            kind: "DeliveryUnproven".to_owned(),
            reason: "CHANGE_NOT_ANNOUNCED".to_owned(),
            message: "The server acknowledged the subscription, and an audit read found a change that it had not \
                      announced. Audits bound the staleness; rely on them or set refresh.mode to Poll."
                .to_owned(),
            since,
        });
    }
    if row.volatile {
        conditions.push(Condition {
            kind: "Volatile".to_owned(),
            reason: "CHANGES_ON_NEARLY_EVERY_READ".to_owned(),
            message: "The content differs on nearly every read, so reads are rate-limited. Exclude what always changes \
                      with digest.ignoreJsonPointers."
                .to_owned(),
            since: shown.accepted_at.unwrap_or(row.created_at),
        });
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn nothing_of_a_search_is_a_wildcard() {
        assert_eq!(contains(r"a%b_c\d"), r"%a\%b\_c\\d%");
    }
}

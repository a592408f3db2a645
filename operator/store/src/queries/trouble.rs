//! What is wrong now, in groups, and since when all has been well.

use chrono::{DateTime, Utc};
use fencepost_views::Attention;

use super::shown::{overdue, revoked, unproven};
use super::{Lent, PageSize, QueryError, index};
use crate::WritesRefused;

/// Names shown of a group; the link shows the rest.
const EXAMPLES: usize = 5;

/// Samples looked at for the last trouble: more than a day of one replica.
const SAMPLES_LOOKED_AT: i64 = 10_000;

/// How many, since when, and the first names.
type Group = (i64, Option<DateTime<Utc>>, Option<Vec<String>>);

/// The groups that are not empty, the widest trouble first.
pub(super) async fn groups(
    lent: &mut Lent,
    refused: Option<WritesRefused>,
) -> Result<Vec<Attention>, QueryError> {
    let mut groups = Vec::new();
    if let Some(refused) = refused {
        let since = Utc::now() - refused.lasting;
        push(
            &mut groups,
            "ledger_unwritable",
            "Ledger cannot be written",
            "/",
            (1, Some(since), Some(vec![refused.why.to_string()])),
        );
    }
    let servers: Group = sqlx::query_as(
        "select count(*), min(coalesce(reason_since, created_at)), \
         (array_agg(namespace || '/' || name order by namespace, name))[1:5] \
         from server where deleted_at is null and reason is not null",
    )
    .fetch_one(lent.get())
    .await?;
    push(
        &mut groups,
        "servers_away",
        "Servers away",
        "/servers",
        servers,
    );
    let stale: Group = sqlx::query_as(concat!(
        "select count(*), min(least(now(), coalesce(r.confirmed_at, r.created_at) + r.max_staleness)), \
         (array_agg(r.uri order by r.id))[1:5] from resource r join subject sub on sub.uid = r.subject_uid where ",
        overdue!()
    ))
    .fetch_one(lent.get())
    .await?;
    push(
        &mut groups,
        "resources_stale",
        "Resources stale",
        "/resources?stale=true",
        stale,
    );
    let unproven: Group = sqlx::query_as(concat!(
        "select count(*), min(coalesce(r.accepted_at, r.created_at)), (array_agg(r.uri order by r.id))[1:5] \
         from resource r join subject sub on sub.uid = r.subject_uid where ",
        unproven!(),
        " and not ",
        revoked!()
    ))
    .fetch_one(lent.get())
    .await?;
    push(
        &mut groups,
        "delivery_unproven",
        "Delivery unproven",
        "/resources?state=ACTIVE",
        unproven,
    );
    let pending: Group = sqlx::query_as(concat!(
        "select count(*), min(coalesce(r.tombstone_since, r.created_at)), (array_agg(r.uri order by r.id))[1:5] \
         from resource r join subject sub on sub.uid = r.subject_uid \
         where r.presence = 'TOMBSTONE_PENDING' and cardinality(r.watches) > 0 and not ",
        revoked!()
    ))
    .fetch_one(lent.get())
    .await?;
    push(
        &mut groups,
        "resources_tombstoned",
        "Tombstones pending",
        "/resources?state=TOMBSTONE_PENDING",
        pending,
    );
    push(
        &mut groups,
        "indexes_behind",
        "Indexes behind",
        "/indexes",
        indexes_behind(lent).await?,
    );
    let watches: Group = sqlx::query_as(
        "select count(*), min(first.since), (array_agg(w.namespace || '/' || w.name order by w.namespace, w.name))[1:5] \
         from watch w cross join lateral ( \
          select min((c.value ->> 'since')::timestamptz) as since from jsonb_array_elements(w.conditions) as c (value)) first \
         where w.deleted_at is null and jsonb_array_length(w.conditions) > 0",
    )
    .fetch_one(lent.get())
    .await?;
    push(
        &mut groups,
        "watches_troubled",
        "Watches with conditions",
        "/resources",
        watches,
    );
    Ok(groups)
}

async fn indexes_behind(lent: &mut Lent) -> Result<Group, QueryError> {
    let rows = index::rows(
        lent,
        i64::from(PageSize::MAX),
        (String::new(), String::new()),
    )
    .await?;
    let behind: Vec<&index::Row> = rows.iter().filter(|row| row.behind()).collect();
    let since = behind
        .iter()
        .map(|row| row.oldest_pending.unwrap_or(row.created_at))
        .min();
    let names = behind
        .iter()
        .take(EXAMPLES)
        .map(|row| format!("{}/{}", row.namespace, row.name))
        .collect();
    Ok((behind.len() as i64, since, Some(names)))
}

fn push(
    groups: &mut Vec<Attention>,
    kind: &str,
    title: &str,
    link: &str,
    (count, since, examples): Group,
) {
    if let (1.., Some(since)) = (count, since) {
        groups.push(Attention {
            kind: kind.to_owned(),
            title: title.to_owned(),
            count,
            since,
            link: link.to_owned(),
            examples: examples.unwrap_or_default(),
        });
    }
}

/// Since when nothing has been wrong: the last time that a session had to be opened again or a sample
/// saw something stale or an index behind; else since the first server was declared.
pub(super) async fn calm_since(lent: &mut Lent) -> Result<Option<DateTime<Utc>>, QueryError> {
    Ok(sqlx::query_scalar(
        "select coalesce(greatest( \
          (select max(s.connected_at) from session s join session_lease l on l.server_uid = s.server_uid \
            and l.subject_uid = s.subject_uid and l.session_generation = s.generation), \
          (select max(at) from (select at, counts from sample order by at desc limit $2) newest \
            where (counts ->> 'stale_resources')::bigint > 0 \
            or (counts ->> 'index_lag_seconds')::float8 > $1)), \
         (select min(created_at) from server where deleted_at is null))",
    )
    .bind(index::LAG_TARGET_SECONDS)
    .bind(SAMPLES_LOOKED_AT)
    .fetch_one(lent.get())
    .await?)
}

//! The ledger as a test sees it: single figures, and what must hold whatever happened.

/// One number.
///
/// # Panics
///
/// When the database cannot be asked.
pub async fn count(url: &str, query: &'static str) -> i64 {
    let pool = sqlx::PgPool::connect(url)
        .await
        .expect("the ledger can be connected to");
    let value = sqlx::query_scalar(query)
        .fetch_one(&pool)
        .await
        .expect("the ledger answers");
    pool.close().await;
    value
}

/// Every receipt once, every counter in order, one announcement a version.
///
/// # Panics
///
/// Naming what does not hold.
pub async fn holds(url: &str) {
    for (what, query) in [
        (
            "versions above their watermark",
            "select count(*) from resource_version v join resource r on r.id = v.resource_id where v.ordinal > r.ordinal",
        ),
        (
            "versions that no accepted read brought",
            "select count(*) from resource_version v left join read d using (resource_id, ordinal)
             where d.outcome is distinct from 'accepted'",
        ),
        (
            "versions not announced once",
            "select count(*) from resource_version v where 1 <> (select count(*) from outbox o
             where o.resource_id = v.resource_id and o.ordinal = v.ordinal and o.kind = 'resource.accepted')",
        ),
        (
            "versions out of order",
            "select count(*) from (select ordinal, lag(ordinal) over (partition by resource_id order by number) before
             from resource_version) v where before >= ordinal",
        ),
        (
            "reads issued after their close",
            "select count(*) from resource r join read d on d.resource_id = r.id and d.generation = r.generation
             where r.close_ordinal is not null and d.ordinal > r.close_ordinal",
        ),
        (
            "reads of ended sessions without a receipt",
            "select count(*) from read d join resource r on r.id = d.resource_id
             where d.outcome is null and r.session_generation > d.session_generation",
        ),
    ] {
        assert_eq!(count(url, query).await, 0, "{what}");
    }
}

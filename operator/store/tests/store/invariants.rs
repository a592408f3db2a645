//! What holds in the ledger whatever happened, asked in SQL.

use sqlx::PgPool;

/// Each counts violations.
const INVARIANTS: &[(&str, &str)] = &[
    (
        "versions rise strictly and are numbered without a gap",
        "select count(*) from (
             select v.ordinal, v.number, lag(v.ordinal) over w as before, row_number() over w as expected
             from resource_version v window w as (partition by v.resource_id order by v.number)) x
         where x.before >= x.ordinal or x.number <> x.expected",
    ),
    (
        "a version names its predecessor, unless a tombstone came between",
        "select count(*) from (
             select v.resource_id, v.ordinal, v.previous_digest, lag(v.ordinal) over w as before,
                 lag(v.digest) over w as expected
             from resource_version v window w as (partition by v.resource_id order by v.number)) x
         where x.previous_digest is distinct from x.expected
             and not (x.previous_digest is null and exists (
                 select from outbox o where o.resource_id = x.resource_id
                     and o.kind = 'resource.tombstoned' and o.ordinal between x.before and x.ordinal))",
    ),
    (
        "no version repeats its predecessor",
        "select count(*) from resource_version where digest = previous_digest",
    ),
    (
        "one announcement for each version",
        "select count(*) from resource_version v
         full join (select resource_id, ordinal, digest, previous_digest, generation, epoch
             from outbox where kind = 'resource.accepted') o
             on o.resource_id = v.resource_id and o.ordinal = v.ordinal
         where v.digest is distinct from o.digest or v.generation is distinct from o.generation
             or v.previous_digest is distinct from o.previous_digest or v.epoch is distinct from o.epoch",
    ),
    (
        "announcements of a resource come in the order of their ordinals",
        "select count(*) from (
             select o.ordinal, lag(o.ordinal) over (partition by o.resource_id order by o.position) as before
             from outbox o) x
         where x.before >= x.ordinal",
    ),
    (
        "each accepted read has its version, and each version its read",
        "select count(*) from (select resource_id, ordinal, digest from read where outcome = 'accepted') r
         full join resource_version v on v.resource_id = r.resource_id and v.ordinal = r.ordinal
         where v.digest is distinct from r.digest",
    ),
    (
        "every read of a closed session has its receipt",
        "select count(*) from read r
         join resource res on res.id = r.resource_id
         join session s on s.server_uid = res.server_uid and s.subject_uid = res.subject_uid
             and s.generation = r.session_generation
         where s.closed_at is not null and r.outcome is null",
    ),
    (
        "no resource of a closed session is open",
        "select count(*) from resource res
         join session s on s.server_uid = res.server_uid and s.subject_uid = res.subject_uid
             and s.generation = res.session_generation
         where s.closed_at is not null and res.subscription not in ('DISCOVERED', 'CLOSED')",
    ),
    (
        "every ordinal that was issued has its read",
        "select count(*) from resource res
         where res.last_issued_ordinal <> (select count(*) from read r where r.resource_id = res.id)
             or res.last_issued_ordinal <> (
                 select coalesce(max(r.ordinal), 0) from read r where r.resource_id = res.id)",
    ),
    (
        "watermark and settled ordinal are those of the receipts",
        "select count(*) from resource res
         where res.ordinal <> (select coalesce(max(r.ordinal), 0) from read r
                 where r.resource_id = res.id and r.outcome in ('accepted', 'unchanged'))
             or res.settled_ordinal <> (select coalesce(max(r.ordinal), 0) from read r
                 where r.resource_id = res.id and r.outcome in ('accepted', 'unchanged', 'not_found'))",
    ),
    (
        "what is current is the last version, unless it is tombstoned",
        "select count(*) from resource res
         left join resource_version v on v.resource_id = res.id and v.number = res.version_count
         where res.presence <> 'TOMBSTONED' and res.digest is distinct from v.digest
             and not (res.digest is null and exists (
                 select from outbox o where o.resource_id = res.id and o.kind = 'resource.tombstoned'
                     and o.ordinal > v.ordinal))",
    ),
    (
        "nothing was issued or accepted after a close",
        "select count(*) from resource res
         where res.close_ordinal is not null
             and (res.last_issued_ordinal > res.close_ordinal or res.ordinal > res.close_ordinal)",
    ),
    (
        "content that is kept is there",
        "select count(*) from resource_version v
         join resource res on res.id = v.resource_id
         left join content c on c.server_uid = res.server_uid and c.subject_uid = res.subject_uid
             and c.digest = v.digest
         where v.content_kept and c.digest is null",
    ),
];

pub async fn check(pool: &PgPool) -> Result<(), String> {
    for (name, sql) in INVARIANTS {
        let violations: i64 = sqlx::query_scalar(*sql).fetch_one(pool).await.unwrap();
        if violations != 0 {
            return Err(format!("{violations} times not so: {name}"));
        }
    }
    Ok(())
}

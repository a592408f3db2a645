-- Issues a batch of reads: raises each resource's last issued ordinal and writes the read, or neither.
-- The rows are locked in the order of their ids, so that no two flushes wait for each other. The
-- conditions on `res` are judged again on the newest row once the lock is there.
-- Answers one row ISSUED for each read that was raised now, and for each resource that exists a row
-- that holds if there is none; joining the two here would compare every read with every other.
with locked as materialized (
    select a.request_id, a.resource_id, a.generation, a.session_generation, a.trigger, a.n,
        res.subject_uid, res.generation as now_generation, res.session_generation as now_session
    from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[])
        with ordinality as a (request_id, resource_id, generation, session_generation, trigger, n)
    join resource res on res.id = a.resource_id
    order by res.id
    for no key update of res
), raised as (
    update resource res
    set last_issued_ordinal = res.last_issued_ordinal + 1
    from locked l
    join subject s on s.uid = l.subject_uid
    where res.id = l.resource_id
        and not s.revoked
        and res.generation = l.generation
        and res.session_generation = l.session_generation
        and res.subscription = 'ACTIVE'
        and not exists (select from read r where r.request_id = l.request_id)
    returning l.n, l.request_id, l.resource_id, l.generation, l.session_generation, l.trigger,
        s.epoch, res.last_issued_ordinal as ordinal
), written as (
    insert into read (request_id, resource_id, generation, session_generation, epoch, ordinal, trigger)
    select request_id, resource_id, generation, session_generation, epoch, ordinal, trigger
    from raised
)
-- The time is the default of `read.issued_at`.
select n, ordinal, epoch, now() as issued_at, 'ISSUED' as verdict
from raised
union all
select l.n, r.ordinal, r.epoch, r.issued_at,
    case
        -- Issued before: the answer to that call was lost, and this is the same call again.
        when r.request_id is not null then
            case when r.resource_id = l.resource_id and r.generation = l.generation
                and r.session_generation = l.session_generation
            then 'ISSUED_BEFORE' else 'REUSED' end
        when s.revoked then 'REVOKED'
        when l.now_generation <> l.generation then 'OTHER_GENERATION'
        when l.now_session <> l.session_generation then 'OTHER_SESSION'
        else 'NOT_ACTIVE'
    end
from locked l
left join read r on r.request_id = l.request_id
left join subject s on s.uid = l.subject_uid

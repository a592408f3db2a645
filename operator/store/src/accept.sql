-- The acceptance point. The resources of the batch are locked, and the advisory lock `outbox` is held
-- when anything in it may be announced; so this statement's snapshot is what stands.
-- Each fence stands twice: in `judged`, which names the receipt, and in the WHERE clauses of `settled`
-- and `changed`, which write. `held` is false where the two disagree, and then nothing is committed.
-- Each step reads the rows that the step before returned: the planner knows no sizes here, and joins
-- between them would compare every row of the batch with every other.
with answer as (
    select a.request_id, a.resource_id, a.ordinal, a.kind, a.digest, a.mime_type, a.size, a.bytes,
        a.server_version, a.reason, a.detail, a.event_id, a.n
    from unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::bytea[], $6::text[], $7::bigint[],
            $8::bytea[], $9::text[], $10::text[], $11::text[], $12::uuid[])
        with ordinality as a (request_id, resource_id, ordinal, kind, digest, mime_type, size, bytes,
            server_version, reason, detail, event_id, n)
), judged as materialized (
    select a.n, a.request_id, a.resource_id, a.ordinal, a.kind, a.digest, a.mime_type, a.size, a.bytes,
        a.server_version, a.reason, a.detail, a.event_id, r.generation, r.session_generation, r.epoch, r.trigger, r.issued_at,
        r.outcome as stands, r.reason as stands_reason, r.digest as stands_digest,
        res.digest as previous_digest,
        case
            when r.request_id is null then 'NEVER_ISSUED'
            when r.outcome is not null then 'ALREADY_SETTLED'
            when r.epoch <> s.epoch then 'STALE_EPOCH'
            when r.generation <> res.generation
                or r.session_generation <> res.session_generation then 'STALE_GENERATION'
            when res.subscription <> 'ACTIVE' then 'STALE_AFTER_CLOSE'
            when r.ordinal <= res.settled_ordinal then 'STALE_ORDINAL'
            when a.kind <> 'content' then a.kind
            when a.digest = res.digest then 'unchanged'
            else 'accepted'
        end as verdict
    from answer a
    left join read r on r.request_id = a.request_id and r.resource_id = a.resource_id
        and r.ordinal = a.ordinal
    left join resource res on res.id = r.resource_id
    left join subject s on s.uid = res.subject_uid
), settled as (
    update read r
    set outcome = case when j.verdict like 'STALE\_%' then 'stale' else j.verdict end,
        reason = case when j.verdict like 'STALE\_%' then j.verdict else j.reason end,
        detail = j.detail,
        digest = j.digest,
        finished_at = now()
    from judged j
    where r.request_id = j.request_id
        and r.resource_id = j.resource_id
        and r.ordinal = j.ordinal
        and r.outcome is null
        and j.verdict not in ('NEVER_ISSUED', 'ALREADY_SETTLED')
    returning j.n, j.resource_id, j.ordinal, j.digest, j.mime_type, j.size, j.bytes, j.server_version,
        j.reason, j.event_id, j.generation, j.session_generation, j.epoch, j.trigger, j.issued_at,
        j.previous_digest, j.verdict
), changed as (
    update resource res
    set settled_ordinal = case when j.verdict in ('accepted', 'unchanged', 'not_found')
            then j.ordinal else res.settled_ordinal end,
        ordinal = case when j.verdict in ('accepted', 'unchanged')
            then j.ordinal else res.ordinal end,
        digest = case when j.verdict = 'accepted' then j.digest else res.digest end,
        mime_type = case when j.verdict = 'accepted' then j.mime_type else res.mime_type end,
        size = case when j.verdict = 'accepted' then j.size else res.size end,
        version_count = res.version_count + case when j.verdict = 'accepted' then 1 else 0 end,
        accepted_at = case when j.verdict = 'accepted' then now() else res.accepted_at end,
        confirmed_at = case when j.verdict in ('accepted', 'unchanged')
            then greatest(res.confirmed_at, j.issued_at) else res.confirmed_at end,
        -- An answer in order tells of every invalidation that came before its read was issued.
        dirty_since = case when j.verdict in ('accepted', 'unchanged', 'not_found')
            and res.dirty_since <= j.issued_at then null else res.dirty_since end,
        stale_reason = case
            when j.verdict in ('accepted', 'unchanged') then null
            else coalesce(j.reason, upper(j.verdict)) end,
        presence = case
            when j.verdict in ('accepted', 'unchanged') then 'PRESENT'
            when j.verdict = 'not_found' and res.presence = 'PRESENT' then 'TOMBSTONE_PENDING'
            else res.presence end,
        tombstone_since = case
            when j.verdict in ('accepted', 'unchanged') then null
            when j.verdict = 'not_found' then coalesce(res.tombstone_since, j.issued_at)
            else res.tombstone_since end,
        tombstone_basis = case when j.verdict in ('accepted', 'unchanged')
            then null else res.tombstone_basis end,
        not_found_reads = case
            when j.verdict in ('accepted', 'unchanged') then 0
            when j.verdict = 'not_found' then res.not_found_reads + 1
            else res.not_found_reads end
    from settled j
    where res.id = j.resource_id
        and j.verdict in ('accepted', 'unchanged', 'not_found', 'refused', 'failed')
        and res.subscription = 'ACTIVE'
        and res.generation = j.generation
        and res.session_generation = j.session_generation
        and res.settled_ordinal < j.ordinal
        and j.epoch = (select s.epoch from subject s where s.uid = res.subject_uid)
    returning j.n, j.verdict, j.previous_digest, j.trigger, j.epoch, j.bytes, j.server_version,
        j.event_id, res.id, res.server_uid, res.subject_uid, res.uri, res.watches, res.generation,
        res.ordinal, res.digest, res.mime_type, res.size, res.version_count, res.keep_versions,
        res.store_content and j.bytes is not null as keep
), version as (
    insert into resource_version (resource_id, ordinal, generation, number, digest, previous_digest,
        mime_type, size, trigger, server_version, epoch, content_kept)
    select c.id, c.ordinal, c.generation, c.version_count, c.digest, c.previous_digest,
        c.mime_type, c.size, c.trigger, c.server_version, c.epoch, c.keep
    from changed c
    where c.verdict = 'accepted'
    returning resource_id
), stored as (
    insert into content (server_uid, subject_uid, digest, mime_type, bytes)
    -- In the order of the key, and each key once: resources may share their content.
    select distinct on (c.server_uid, c.subject_uid, c.digest)
        c.server_uid, c.subject_uid, c.digest, c.mime_type, c.bytes
    from changed c
    where c.verdict = 'accepted' and c.keep
    order by c.server_uid, c.subject_uid, c.digest
    on conflict (server_uid, subject_uid, digest) do update set touched_at = now()
), pruned as (
    update resource_version v
    set content_kept = false
    from changed c
    where c.verdict = 'accepted'
        and v.resource_id = c.id
        -- One in, one out; what a lowered bound lets go at once, `put_resources` does.
        and v.number = c.version_count - c.keep_versions
        and v.content_kept
), announced as (
    insert into outbox (position, id, kind, resource_id, namespace, server, subject, watches, uri, epoch,
        generation, ordinal, digest, previous_digest, mime_type)
    select nextval('outbox_position'), o.event_id, 'resource.accepted', o.id, o.namespace, o.server,
        o.subject, o.watches, o.uri, o.epoch, o.generation, o.ordinal, o.digest, o.previous_digest,
        o.mime_type
    from (
        select c.n, c.event_id, c.id, server.namespace, server.name as server, subject.name as subject,
            c.watches, c.uri, c.epoch, c.generation, c.ordinal, c.digest, c.previous_digest, c.mime_type
        from changed c
        join server on server.uid = c.server_uid
        join subject on subject.uid = c.subject_uid
        where c.verdict = 'accepted'
        order by c.n
    ) o
    returning resource_id
)
select j.verdict, j.previous_digest,
    j.stands, j.stands_reason, j.stands_digest, stood.previous_digest as stood_previous_digest,
    (select count(*) from settled) = (select count(*) from judged o
            where o.verdict not in ('NEVER_ISSUED', 'ALREADY_SETTLED'))
        and (select count(*) from changed) = (select count(*) from judged o
            where o.verdict in ('accepted', 'unchanged', 'not_found', 'refused', 'failed'))
        and (select count(*) from version) = (select count(*) from judged o where o.verdict = 'accepted')
        and (select count(*) from announced) = (select count(*) from judged o where o.verdict = 'accepted')
        as held
from judged j
-- The version that a lost commit wrote.
left join resource_version stood on j.verdict = 'ALREADY_SETTLED'
    and stood.resource_id = j.resource_id and stood.ordinal = j.ordinal
order by j.n

-- The ledger. Every fence of the core stands here again, as a constraint or in a guarded statement
-- of the store. Times are the database's clock. Column lists are explicit in every statement, so that
-- a later migration may add columns while an older replica runs.

-- An MCPServer object; same name with another uid is another server.
create table server (
    uid uuid primary key,
    namespace text not null,
    name text not null,
    address text not null,
    protocol text not null check (protocol in ('Auto', 'Legacy', 'Modern')),
    era text check (era in ('legacy', 'modern')),
    protocol_version text,
    server_name text,
    server_version text,
    capabilities jsonb,
    subscribe boolean,
    -- Why no session is open: a stable upper-case word and a sentence. Null: it is well.
    reason text,
    message text,
    reason_since timestamptz,
    created_at timestamptz not null default now(),
    deleted_at timestamptz
);
create unique index server_by_name on server (namespace, name) where deleted_at is null;

-- An MCPSubject object, or the anonymous subject of a namespace.
create table subject (
    uid uuid primary key,
    namespace text not null,
    name text not null,
    anonymous boolean not null default false,
    -- Authorization epoch: rises with each withdrawal, never falls.
    epoch bigint not null default 1 check (epoch > 0),
    revoked boolean not null default false,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz not null default now(),
    deleted_at timestamptz
);
create unique index subject_by_name on subject (namespace, name) where deleted_at is null;

-- Who holds (server, subject). The lease's epoch is the session generation: whoever takes the lease
-- raises it, and everything of the generation before is closed in the same transaction.
create table session_lease (
    server_uid uuid not null references server (uid),
    subject_uid uuid not null references subject (uid),
    owner uuid not null,
    session_generation bigint not null check (session_generation > 0),
    expires_at timestamptz not null,
    primary key (server_uid, subject_uid)
);

-- One connection incarnation, with its capability receipt.
create table session (
    server_uid uuid not null references server (uid),
    subject_uid uuid not null references subject (uid),
    generation bigint not null check (generation > 0),
    owner uuid not null,
    era text check (era in ('legacy', 'modern')),
    protocol_version text,
    -- name/version as the server called itself.
    server_version text,
    receipt jsonb,
    receipt_digest bytea check (octet_length(receipt_digest) = 32),
    opened_at timestamptz not null default now(),
    connected_at timestamptz,
    closed_at timestamptz,
    close_reason text,
    primary key (server_uid, subject_uid, generation)
);
create index session_open on session (server_uid, subject_uid) where closed_at is null;

-- A WatchedResource object, as last published.
create table watch (
    uid uuid primary key,
    namespace text not null,
    name text not null,
    server_uid uuid,
    subject_uid uuid,
    -- What the API shows of the spec: server, subject, mode, durations in seconds, stage, percent, suspended.
    shown jsonb not null,
    conditions jsonb not null default '[]',
    created_at timestamptz not null default now(),
    deleted_at timestamptz
);
create unique index watch_by_name on watch (namespace, name) where deleted_at is null;

-- (server, subject, exact URI). Never merged by normal form.
create table resource (
    id uuid primary key,
    server_uid uuid not null references server (uid),
    subject_uid uuid not null references subject (uid),
    uri text not null,
    uri_normal text,
    -- What watches it: 'namespace/name', sorted.
    watches text[] not null default '{}',
    mode text not null check (mode in ('Subscribe', 'Poll')),
    cohort boolean not null default true,
    max_staleness interval not null,
    -- Seconds between polls or audits, for display.
    read_interval interval not null,
    store_content boolean not null,
    keep_versions integer not null check (keep_versions >= 1),
    subscription text not null default 'DISCOVERED' check (subscription in
        ('DISCOVERED', 'SUBSCRIBING', 'ACTIVE', 'UNSUBSCRIBING', 'CLOSED', 'UNSUBSCRIBE_UNKNOWN', 'RECONCILIATION_REQUIRED')),
    presence text not null default 'PRESENT' check (presence in ('PRESENT', 'TOMBSTONE_PENDING', 'TOMBSTONED')),
    generation bigint not null default 0 check (generation >= 0),
    session_generation bigint not null default 0 check (session_generation >= 0),
    last_issued_ordinal bigint not null default 0 check (last_issued_ordinal >= 0),
    -- Highest ordinal whose answer settled what is true: content or not found, in order.
    settled_ordinal bigint not null default 0 check (settled_ordinal >= 0),
    -- The watermark.
    ordinal bigint not null default 0 check (ordinal >= 0),
    close_ordinal bigint,
    -- Rises each time a generation begins closing.
    close_epoch bigint not null default 0,
    closed_at timestamptz,
    digest bytea check (octet_length(digest) = 32),
    mime_type text,
    size bigint,
    -- How many versions were ever accepted; numbers them for keepVersions.
    version_count bigint not null default 0,
    accepted_at timestamptz,
    -- Issue time of the last read that was accepted or unchanged: the content is current as of then.
    confirmed_at timestamptz,
    -- First invalidation that no read answers yet.
    dirty_since timestamptz,
    -- Why the last read did not confirm: a stable upper-case word. Null after a read that did.
    stale_reason text,
    tombstone_since timestamptz,
    tombstone_basis text check (tombstone_basis in ('ReadsOnly', 'Listings')),
    not_found_reads integer not null default 0,
    volatile boolean not null default false,
    delivery_proven boolean not null default false,
    created_at timestamptz not null default now(),
    unique (server_uid, subject_uid, uri),
    check (ordinal <= settled_ordinal),
    check (settled_ordinal <= last_issued_ordinal),
    check (close_ordinal is null or close_ordinal <= last_issued_ordinal),
    check ((subscription in ('UNSUBSCRIBING', 'UNSUBSCRIBE_UNKNOWN', 'CLOSED')) = (close_ordinal is not null)),
    check (presence <> 'TOMBSTONED' or digest is null)
) with (fillfactor = 80);
create index resource_by_session on resource (server_uid, subject_uid, session_generation);
create index resource_by_watch on resource using gin (watches);
create index resource_normal on resource (server_uid, subject_uid, uri_normal);

-- What the core never does, the database refuses: a watermark, an issued ordinal, a settled ordinal
-- or a generation that falls; an ordinal issued after the close; a closed generation that reopens.
create function resource_fence() returns trigger language plpgsql as $$
begin
    if new.ordinal < old.ordinal or new.settled_ordinal < old.settled_ordinal
        or new.last_issued_ordinal < old.last_issued_ordinal
        or new.generation < old.generation or new.session_generation < old.session_generation
        or new.close_epoch < old.close_epoch or new.version_count < old.version_count then
        raise exception 'resource %: a counter of the ledger would fall', old.id using errcode = 'FP001';
    end if;
    if new.generation = old.generation
        and old.subscription in ('UNSUBSCRIBING', 'UNSUBSCRIBE_UNKNOWN', 'CLOSED') then
        if new.last_issued_ordinal > old.last_issued_ordinal or new.ordinal > old.ordinal
            or new.settled_ordinal > old.settled_ordinal or new.digest is distinct from old.digest
            or new.close_ordinal is distinct from old.close_ordinal then
            raise exception 'resource %: a closed generation would change', old.id using errcode = 'FP002';
        end if;
        if new.subscription in ('DISCOVERED', 'SUBSCRIBING', 'ACTIVE') then
            raise exception 'resource %: a closed generation would reopen', old.id using errcode = 'FP003';
        end if;
    end if;
    return new;
end $$;
create trigger resource_fence before update on resource
    for each row execute function resource_fence();

-- Dispatched reads and their receipts: one row a read, settled once. No row, no read.
create table read (
    request_id uuid primary key,
    resource_id uuid not null references resource (id),
    generation bigint not null,
    session_generation bigint not null,
    epoch bigint not null,
    ordinal bigint not null check (ordinal > 0),
    trigger text not null check (trigger in
        ('Baseline', 'Notification', 'Poll', 'Audit', 'Gap', 'Manual', 'TombstoneCheck')),
    issued_at timestamptz not null default now(),
    finished_at timestamptz,
    outcome text check (outcome in ('accepted', 'unchanged', 'stale', 'not_found', 'refused', 'failed')),
    reason text,
    detail text,
    digest bytea check (octet_length(digest) = 32),
    unique (resource_id, ordinal),
    check ((outcome is null) = (finished_at is null)),
    check (outcome <> 'stale' or reason in
        ('STALE_EPOCH', 'STALE_GENERATION', 'STALE_AFTER_CLOSE', 'STALE_ORDINAL'))
);
create index read_unsettled on read (resource_id) where outcome is null;
create index read_by_issue on read (issued_at);

-- A settled read never changes again.
create function read_settled_once() returns trigger language plpgsql as $$
begin
    raise exception 'read %: it has its receipt already', old.request_id using errcode = 'FP004';
end $$;
create trigger read_settled_once before update on read
    for each row when (old.outcome is not null) execute function read_settled_once();

-- Accepted versions (resourceVersion.v1).
create table resource_version (
    -- Of a resource that exists: the read below is of one.
    resource_id uuid not null,
    ordinal bigint not null check (ordinal > 0),
    generation bigint not null,
    -- 1 for the first version of the resource; keepVersions counts back from the newest.
    number bigint not null,
    digest bytea not null check (octet_length(digest) = 32),
    previous_digest bytea check (octet_length(previous_digest) = 32),
    mime_type text,
    size bigint not null,
    accepted_at timestamptz not null default now(),
    trigger text not null,
    server_version text not null,
    epoch bigint not null,
    -- Whether the bytes are in `content`.
    content_kept boolean not null,
    primary key (resource_id, ordinal),
    unique (resource_id, number),
    foreign key (resource_id, ordinal) references read (resource_id, ordinal)
);
create index resource_version_content on resource_version (digest) where content_kept;

-- Content, addressed by its digest within (server, subject): never shared across subjects.
create table content (
    -- Those of the resource it was accepted for, in the same statement.
    server_uid uuid not null,
    subject_uid uuid not null,
    digest bytea not null check (octet_length(digest) = 32),
    mime_type text,
    bytes bytea not null,
    -- Raised when a version names it again: the collector leaves young rows alone.
    touched_at timestamptz not null default now(),
    primary key (server_uid, subject_uid, digest)
);

-- Ordered invalidations, written with what they announce. Whoever writes here holds the advisory lock
-- `outbox` until its commit, so that positions become visible in their order and a reader never
-- passes a transaction that is still open.
create sequence outbox_position;
create table outbox (
    position bigint primary key,
    id uuid not null,
    kind text not null check (kind in
        ('resource.accepted', 'resource.tombstoned', 'subject.revoked', 'catalog.published')),
    -- Of the resource whose change is announced, in the same statement.
    resource_id uuid,
    namespace text not null,
    server text not null,
    subject text not null,
    watches text[] not null,
    uri text not null,
    epoch bigint not null,
    generation bigint not null,
    ordinal bigint not null,
    digest bytea,
    previous_digest bytea,
    mime_type text,
    basis text,
    created_at timestamptz not null default now(),
    -- The supersede note, computed once and then the same for every reader and every try.
    supersede jsonb,
    supersede_done boolean not null default false
);
-- One announcement a version, one a tombstone.
create unique index outbox_once on outbox (resource_id, kind, ordinal) where resource_id is not null;
create index outbox_by_time on outbox (created_at);
-- What still waits for its note: a handful of rows, found without walking the rest.
create index outbox_unwritten on outbox (position) where not supersede_done;

-- A DerivedIndex object and how far it has been told.
create table derived_index (
    uid uuid primary key,
    namespace text not null,
    name text not null,
    url text not null,
    -- Null: all watches of its namespace; otherwise 'namespace/name'.
    watches text[],
    -- Null: all kinds.
    events text[],
    include_content boolean not null,
    include_supersede boolean not null,
    delivered_position bigint not null default 0,
    acknowledged_position bigint not null default 0,
    attempts integer not null default 0,
    last_error text,
    retry_at timestamptz,
    last_acknowledged_at timestamptz,
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    check (acknowledged_position <= delivered_position)
);
create unique index derived_index_by_name on derived_index (namespace, name) where deleted_at is null;

-- Which replica delivers to an index; the database's clock writes it and judges it.
create table delivery_lease (
    index_uid uuid primary key references derived_index (uid),
    owner uuid not null,
    expires_at timestamptz not null
);

-- Notifications, gaps, openings and closes: the marks in the picture of reads.
create table mark (
    id bigint generated always as identity primary key,
    resource_id uuid not null references resource (id),
    at timestamptz not null,
    kind text not null check (kind in ('notification', 'gap', 'opened', 'closed', 'tombstoned')),
    generation bigint not null,
    detail text
);
create index mark_by_resource on mark (resource_id, at);
create index mark_by_time on mark (at);

-- What happened in the `seconds` before `at` on one replica: the charts' samples.
create table sample (
    replica uuid not null,
    at timestamptz not null,
    seconds double precision not null,
    -- {"reads": {"Poll": 3}, "notifications": 2, "versions": 1, "convergence_buckets": [..], ...}
    counts jsonb not null,
    primary key (at, replica)
);

-- The order of the API's list of resources: by the bytes of the URI, whatever the database's locale is.
create index resource_by_uri on resource (uri collate "C", id);
-- Changes that only an audit found: few, and asked for over all resources.
create index resource_version_by_audit on resource_version (resource_id, generation) where trigger = 'Audit';

-- Who may publish the manifests: the replica that claimed last. Its epoch rises with each claim; whoever
-- publishes under an older one publishes nothing. One row.
create table publisher (
    singleton boolean primary key default true check (singleton),
    epoch bigint not null check (epoch > 0),
    owner uuid not null,
    claimed_at timestamptz not null default now()
);

-- What `fencepost dev` remembers of its files: one row.
create table file_source (
    singleton boolean primary key default true check (singleton),
    state jsonb not null
);

-- oldest program: 1
-- Instants are milliseconds since 1970 in UTC, except observed_at (microseconds). Text compares byte by byte
-- (SQLite's BINARY, PostgreSQL's "C"), so both databases sort alike.

-- The migration steps that were done. After a step, a program must know step oldest_program to use the database.
CREATE TABLE schema_step (
    number         INTEGER PRIMARY KEY,
    oldest_program INTEGER NOT NULL,
    at             INTEGER NOT NULL
);

CREATE TABLE api_key (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    principal    TEXT NOT NULL,
    scopes       TEXT NOT NULL,             -- a JSON list
    last_four    TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,                   -- NULL: never
    last_used_at INTEGER,
    revoked_at   INTEGER,
    guest        INTEGER NOT NULL DEFAULT 0 -- 1: the key's grants apply only in workspaces with guests_enabled
) WITHOUT ROWID;
-- For each event, the service looks up the keys of the principals that may get the event.
CREATE INDEX api_key_by_principal ON api_key (principal);

-- A key has several secrets only during the overlap of a rotation.
CREATE TABLE api_key_secret (
    key_id      TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    sha256      BLOB NOT NULL,
    valid_until INTEGER,                    -- NULL: valid as long as the key
    PRIMARY KEY (key_id, sha256)
) WITHOUT ROWID;

-- A role on one workspace, or on all workspaces (workspace_id empty).
CREATE TABLE access_grant (
    principal    TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    role         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (principal, workspace_id, role)
) WITHOUT ROWID;

-- The sessions of the pages. token: digest of the cookie's token. secret: digest of the API key at the sign-in. The session
-- ends when the key or this secret becomes invalid.
CREATE TABLE page_session (
    token      BLOB NOT NULL PRIMARY KEY,
    key_id     TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX page_session_by_key ON page_session (key_id);
CREATE INDEX page_session_by_end ON page_session (expires_at);

-- Settings that the first start fixes for the life of the data, because records contain them.
CREATE TABLE fixed_setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Leases of jobs that only one process at a time may run: the process, and the end of its lease.
CREATE TABLE job_lease (
    job     TEXT NOT NULL PRIMARY KEY,
    holder  TEXT NOT NULL,
    ends_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workspace (
    number               INTEGER PRIMARY KEY,
    id                   TEXT NOT NULL UNIQUE,
    label                TEXT NOT NULL,
    root_block           TEXT NOT NULL,
    public_can_read      INTEGER NOT NULL,
    exports_enabled      INTEGER NOT NULL,
    guests_enabled       INTEGER NOT NULL,
    current_version      TEXT NOT NULL,
    statuses             TEXT NOT NULL,     -- a JSON list
    version              INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    created_by           TEXT NOT NULL,
    updated_by           TEXT NOT NULL,
    deleted_at           INTEGER,
    last_sink_serial     INTEGER NOT NULL DEFAULT 0,
    sink_count           INTEGER NOT NULL DEFAULT 0,
    block_count          INTEGER NOT NULL DEFAULT 0,
    purging              INTEGER NOT NULL DEFAULT 0 -- 1: the workspace can't be restored, because a part is removed
);
CREATE INDEX workspace_deleted ON workspace (deleted_at) WHERE deleted_at IS NOT NULL;

-- Lists are JSON. multiplicity is the text of a number, so that all its digits are kept.
CREATE TABLE block (
    id                  TEXT NOT NULL PRIMARY KEY,
    workspace           INTEGER NOT NULL REFERENCES workspace (number),
    parent_id           TEXT REFERENCES block (id), -- NULL: the root
    label               TEXT NOT NULL,
    order_index         REAL NOT NULL,
    version             INTEGER NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    created_by          TEXT NOT NULL,
    updated_by          TEXT NOT NULL,
    description         TEXT NOT NULL DEFAULT '',
    part_number         TEXT NOT NULL DEFAULT '',
    multiplicity        TEXT NOT NULL DEFAULT '1',
    pdm_enabled         INTEGER NOT NULL DEFAULT 0,
    property_groups     TEXT NOT NULL DEFAULT '[]',
    instances           TEXT NOT NULL DEFAULT '[]',
    preview_custom_link TEXT NOT NULL DEFAULT '',
    preview_source      TEXT NOT NULL DEFAULT '',
    figures             TEXT NOT NULL DEFAULT '[]',
    icon                TEXT NOT NULL DEFAULT '',
    attachments         TEXT NOT NULL DEFAULT '[]',
    external_links      TEXT NOT NULL DEFAULT '[]',
    pdm_thumbnail       TEXT NOT NULL DEFAULT '',
    block_statuses      TEXT NOT NULL DEFAULT '[]',
    type                TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE UNIQUE INDEX block_root ON block (workspace) WHERE parent_id IS NULL;
-- The first index has the children of a block in their order. The second is for the foreign key parent_id.
CREATE INDEX block_by_workspace ON block (workspace, parent_id, order_index, id);
CREATE INDEX block_by_parent ON block (parent_id);

CREATE TABLE data_sink (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    workspace       INTEGER NOT NULL REFERENCES workspace (number),
    serial          INTEGER NOT NULL,
    label           TEXT NOT NULL,
    description     TEXT,
    tags            TEXT,
    icon            TEXT,                       -- a JSON object
    entry_count     INTEGER NOT NULL DEFAULT 0,
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    created_by      TEXT NOT NULL,
    updated_by      TEXT NOT NULL,
    -- NULL: the sink exists. Otherwise the sink is deleted: no request finds the sink, and its id is free. Its entries up to
    -- this number are already removed. The remaining entries are removed in steps.
    removed_to      INTEGER,
    -- How many changes of each entry are kept, and for how many days. NULL: the default of the service; 0 changes: no history.
    history_changes INTEGER,
    history_days    INTEGER,
    -- The time from which every change of the sink is recorded; NULL: no history. Rows up to history_after are ignored.
    history_from    INTEGER,
    history_after   INTEGER NOT NULL DEFAULT 0,
    -- 1: writes without an origin do not change entries that were written with an origin.
    protect_fed_entries INTEGER NOT NULL DEFAULT 0,
    UNIQUE (workspace, serial)
);
CREATE INDEX data_sink_deleted ON data_sink (workspace, number) WHERE removed_to IS NOT NULL;

-- Rows are appended by number and found by (sink, key). There is no index over every id: ids are random, and a second
-- random B-tree halves the rate of bulk writes. An id that the service made contains its row's number, scrambled, in its
-- last twelve digits (workspaced.resources.data_sinks.sink_address); only ids that clients supplied are indexed.
CREATE TABLE data_sink_entry (
    number      INTEGER PRIMARY KEY,
    sink        INTEGER NOT NULL REFERENCES data_sink (number),
    key         TEXT NOT NULL,
    value       TEXT,
    data_type   TEXT NOT NULL,
    id          TEXT NOT NULL,
    id_supplied INTEGER NOT NULL,
    observed_at INTEGER,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    updated_by  TEXT NOT NULL,
    -- The origin of the last write: entry_origin.number << 32 | row. Negative: the last write had no origin, and this is the
    -- last origin before it. NULL: no write had an origin.
    origin      INTEGER
);
CREATE UNIQUE INDEX data_sink_entry_by_key ON data_sink_entry (sink, key);
CREATE UNIQUE INDEX data_sink_entry_by_supplied_id ON data_sink_entry (id) WHERE id_supplied;
-- A sink's entries in the order of their creation. SQLite appends the rowid, which is the number, to every index. Numbers
-- only grow and never change, so an insertion appends to the index, and an update does not change it. Only statements with the
-- expression "sink + 0" use the index. With the plain column, PostgreSQL might also use it to find an entry by sink and key.
CREATE INDEX data_sink_entry_by_sink ON data_sink_entry (sink + 0);

-- One row: the last number given to an entry, this database's random offset for scrambled numbers, and the last change for
-- which older changes of the same entry were dropped.
CREATE TABLE data_sink_entry_numbers (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    last_number       INTEGER NOT NULL,
    scramble          INTEGER NOT NULL,
    changes_pruned_to INTEGER NOT NULL DEFAULT 0
);
INSERT INTO data_sink_entry_numbers (one, last_number, scramble) VALUES (1, 0, random() & 0xffffffffffff);

-- Former values of entries. A row has the value before a change. The value after the change is in the next row of the key, or
-- in the entry, so each value is stored once. No foreign key: the removal of a sink deletes its changes first, and a check for
-- each row would slow bulk writes.
CREATE TABLE entry_change (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused, because data_sink.history_after refers to it
    sink          INTEGER NOT NULL,
    key           TEXT NOT NULL,
    at            INTEGER NOT NULL,                    -- never decreases for a key
    old_value     TEXT,
    old_data_type TEXT,                                -- NULL: the key had no entry
    known_from    INTEGER,                             -- if older rows of the key were dropped: when old_value was set
    actor         TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    client_id     TEXT NOT NULL,
    request_id    TEXT NOT NULL,
    operation     TEXT NOT NULL,
    old_origin    INTEGER                              -- in the form of data_sink_entry.origin
);
CREATE INDEX entry_change_by_key ON entry_change (sink, key, at);
CREATE INDEX entry_change_by_time ON entry_change (sink, at);
CREATE INDEX entry_change_cut ON entry_change (sink, known_from) WHERE known_from IS NOT NULL;

-- Origins of values. Each sink has its own origins, because a write locks only its sink. Entries and changes refer to an origin
-- and a row. An index of these references would slow bulk writes, so a job searches for origins without references.
CREATE TABLE entry_origin (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,        -- never reused, because a reader may still have the number
    sink     INTEGER NOT NULL,
    digest   TEXT NOT NULL,                            -- of the texts
    source   TEXT NOT NULL,
    file     TEXT NOT NULL,                            -- this and the next three columns: empty if not given
    run      TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    link     TEXT NOT NULL,
    kept_at  INTEGER NOT NULL                          -- when the origin was last written, or found in use
);
CREATE UNIQUE INDEX entry_origin_by_digest ON entry_origin (sink, digest);
CREATE INDEX entry_origin_by_age ON entry_origin (kept_at);

-- The newest epoch and attempt of each writer in a workspace. A request with an older epoch or attempt is refused.
CREATE TABLE writer (
    workspace TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    name      TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    raised_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) WITHOUT ROWID;
CREATE INDEX writer_by_age ON writer (raised_at);

-- Leases: which process may send as a writer. Times are milliseconds since 1970, by the clock of the database.
CREATE TABLE writer_lease (
    writer    TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL,
    holder    TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    ends_at   INTEGER NOT NULL,
    successor TEXT NOT NULL              -- the process that asks for the lease; empty: none
) WITHOUT ROWID;
CREATE INDEX writer_lease_by_principal ON writer_lease (principal, ends_at);

-- Responses for repeated requests (Idempotency-Key). Their numbers are in order of time: the oldest response has the lowest.
CREATE TABLE idempotent_response (
    number      INTEGER PRIMARY KEY,
    slot        BLOB NOT NULL UNIQUE,       -- digest of API key, method, path and Idempotency-Key
    fingerprint BLOB NOT NULL,              -- digest of query and body
    status      INTEGER NOT NULL,
    headers     TEXT NOT NULL,              -- a JSON list of pairs
    body        BLOB NOT NULL,
    created_at  INTEGER NOT NULL
);

-- The audit log: one row for each change; a bulk request is one change. A row contains no values and no secrets. Rows are only
-- appended, and dropped after their retention time. There is no foreign key, because the resource of a row may be deleted.
CREATE TABLE audit_row (
    number         INTEGER PRIMARY KEY,
    at             INTEGER NOT NULL,
    principal      TEXT NOT NULL,
    key_id         TEXT NOT NULL,
    client_id      TEXT NOT NULL,
    request_id     TEXT NOT NULL,
    address        TEXT NOT NULL,
    action         TEXT NOT NULL,
    resource_id    TEXT NOT NULL,
    resource_label TEXT NOT NULL,           -- the key, label or name at that time; empty: none
    workspace_id   TEXT NOT NULL,
    changed        TEXT NOT NULL,           -- a JSON list of members
    counts         TEXT NOT NULL,           -- a JSON object
    origin         TEXT NOT NULL DEFAULT '' -- a phrase that names where the values come from
);
CREATE INDEX audit_row_by_workspace ON audit_row (workspace_id, at);
CREATE INDEX audit_row_by_time ON audit_row (at);

CREATE TABLE webhook (
    number            INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    owner             TEXT NOT NULL,              -- a principal
    label             TEXT NOT NULL,
    url               TEXT NOT NULL,
    headers           BLOB NOT NULL,              -- a sealed JSON list
    data_events       TEXT NOT NULL,              -- a JSON list
    oauth             BLOB NOT NULL,              -- a sealed JSON object
    workspace_ids     TEXT NOT NULL,              -- a JSON list; empty: all workspaces that the owner may read
    ignore_client_ids TEXT NOT NULL,              -- a JSON list
    coalesce_updates  INTEGER NOT NULL,
    enabled           INTEGER NOT NULL,
    disabled_reason   TEXT NOT NULL,
    failing_since     INTEGER,                    -- NULL: the last attempt succeeded, or there was none
    failures          INTEGER NOT NULL DEFAULT 0, -- failed attempts since then
    version           INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    created_by        TEXT NOT NULL,
    updated_by        TEXT NOT NULL,
    removed_to        INTEGER,                    -- as in data_sink, for the deliveries of a deleted webhook
    in_order          INTEGER NOT NULL DEFAULT 0, -- 1: one request at a time
    batch_entries     INTEGER NOT NULL DEFAULT 0  -- 1: events of several entries in a request
);
CREATE INDEX webhook_by_owner ON webhook (owner);
-- Every write reads this index, which is nearly always empty.
CREATE INDEX webhook_enabled ON webhook (number) WHERE enabled = 1;
CREATE INDEX webhook_deleted ON webhook (number) WHERE removed_to IS NOT NULL;

-- A webhook has several secrets only while rotations overlap. The newest secret has the highest number.
CREATE TABLE webhook_secret (
    number      INTEGER PRIMARY KEY,
    webhook     INTEGER NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    secret      BLOB NOT NULL,                    -- sealed
    valid_until INTEGER                           -- NULL: the secret that records show
);
CREATE INDEX webhook_secret_by_webhook ON webhook_secret (webhook, number);

-- One row: the last number given to an event or a delivery.
CREATE TABLE event_numbers (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    last_number INTEGER NOT NULL
);
INSERT INTO event_numbers VALUES (1, 0);

CREATE TABLE event_sequence (
    workspace_id  TEXT NOT NULL PRIMARY KEY,
    last_sequence INTEGER NOT NULL
) WITHOUT ROWID;

-- Only events that at least one webhook gets are stored.
CREATE TABLE event (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    type         TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    sequence     INTEGER NOT NULL,
    body         BLOB NOT NULL,                   -- what is sent, byte for byte
    created_at   INTEGER NOT NULL,
    resource     TEXT NOT NULL DEFAULT ''         -- type and id of the event's resource, as in its deliveries
);
CREATE INDEX event_by_age ON event (created_at);

-- Events that were committed for a webhook and have no delivery yet: the events from first_event to last_event with one of the
-- types. The rows of a webhook become deliveries in the order of their numbers.
CREATE TABLE event_fan_out (
    number      INTEGER PRIMARY KEY,
    webhook     INTEGER NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    types       TEXT NOT NULL,              -- a JSON list
    first_event INTEGER NOT NULL,
    last_event  INTEGER NOT NULL
);
CREATE INDEX event_fan_out_by_webhook ON event_fan_out (webhook);

-- status: pending (not tried since it was queued), failed (to be tried again), succeeded, dead (not tried again).
-- A lease is a name in ``lease`` and its end in ``due_at``: after its end the delivery is due again.
CREATE TABLE delivery (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    webhook     INTEGER NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    event       INTEGER NOT NULL REFERENCES event (number) ON DELETE CASCADE,
    resource    TEXT NOT NULL,                    -- type and id of the event's resource
    status      TEXT NOT NULL,
    tries       INTEGER NOT NULL DEFAULT 0,       -- attempts since it was queued; a redelivery begins at 0
    attempts    INTEGER NOT NULL DEFAULT 0,       -- all attempts
    due_at      INTEGER NOT NULL,
    lease       TEXT,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
);
-- The order of indexes matters: if two are equally good for a statement, SQLite uses the index that was created last. The index
-- delivery_by_webhook is first, because it has every delivery of thirty days.
CREATE INDEX delivery_by_webhook ON delivery (webhook, number);
CREATE INDEX delivery_by_event ON delivery (event);
CREATE INDEX delivery_pending ON delivery (webhook, number) WHERE status = 'pending';
CREATE INDEX delivery_pending_resource ON delivery (webhook, resource, number) WHERE status = 'pending';
CREATE INDEX delivery_failed ON delivery (webhook, due_at) WHERE status = 'failed';
CREATE INDEX delivery_leased ON delivery (webhook) WHERE lease IS NOT NULL;

CREATE TABLE delivery_attempt (
    delivery     INTEGER NOT NULL REFERENCES delivery (number) ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    status_code  INTEGER,                         -- NULL: no response
    error        TEXT,
    response     TEXT NOT NULL,                   -- the beginning of the response
    PRIMARY KEY (delivery, ordinal)
) WITHOUT ROWID;

-- Stored bytes, by their SHA-256 in 64 lower-case hexadecimal digits. A row is committed before its bytes are written, and deleted
-- before its bytes are deleted. A name is never used again. Files, uploads and outputs refer to the rows.
CREATE TABLE blob (
    sha256       TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,                  -- the name of the bytes in the folder or bucket
    size         INTEGER NOT NULL,
    unused_since INTEGER                         -- when the bytes were announced, or found unused; NULL: in use
) WITHOUT ROWID;
CREATE INDEX blob_unused ON blob (unused_since) WHERE unused_since IS NOT NULL;

-- Names of bytes that must be deleted from the folder or bucket. A row is removed after its bytes are deleted.
CREATE TABLE dropped_blob (
    name TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

-- Files with their versions, open uploads, and conversions.
CREATE TABLE cloud_file (
    number          INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    workspace       INTEGER NOT NULL REFERENCES workspace (number),
    file_name       TEXT NOT NULL,
    content_type    TEXT NOT NULL,
    description     TEXT,
    tags            TEXT,
    metadata        TEXT NOT NULL DEFAULT '{}',  -- a JSON object
    current_version INTEGER NOT NULL,            -- an ordinal; 0: nothing was uploaded yet
    version         INTEGER NOT NULL,            -- of this row, for ETag
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    created_by      TEXT NOT NULL,
    updated_by      TEXT NOT NULL,
    deleted_at      INTEGER
);
CREATE INDEX cloud_file_by_workspace ON cloud_file (workspace, created_at, id);
CREATE INDEX cloud_file_deleted ON cloud_file (deleted_at) WHERE deleted_at IS NOT NULL;
-- For files that were announced, but not uploaded.
CREATE INDEX cloud_file_empty ON cloud_file (created_at) WHERE current_version = 0;

CREATE TABLE cloud_version (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    file         INTEGER NOT NULL REFERENCES cloud_file (number) ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,               -- 1, 2, 3 … in each file
    file_name    TEXT NOT NULL,
    content_type TEXT NOT NULL,
    sha256       TEXT NOT NULL REFERENCES blob (sha256),
    size         INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    UNIQUE (file, ordinal)
);
CREATE INDEX cloud_version_by_sha256 ON cloud_version (sha256);

-- An upload by link: offered, then received (sha256 and size are known), then completed.
CREATE TABLE cloud_upload (
    number          INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    file            INTEGER NOT NULL REFERENCES cloud_file (number) ON DELETE CASCADE,
    file_name       TEXT NOT NULL,
    content_type    TEXT NOT NULL,
    expected_size   INTEGER,
    expected_sha256 TEXT,
    expires_at      INTEGER NOT NULL,
    sha256          TEXT REFERENCES blob (sha256),
    size            INTEGER,
    received_at     INTEGER,
    completed_at    INTEGER,
    -- The API key that requested the link, and the digest of its secret. The link ends when the key or this secret is invalid.
    key_id          TEXT NOT NULL DEFAULT '',
    secret          BLOB NOT NULL DEFAULT x''
);
CREATE INDEX cloud_upload_by_file ON cloud_upload (file, number);
CREATE INDEX cloud_upload_by_expiry ON cloud_upload (expires_at);
CREATE INDEX cloud_upload_by_sha256 ON cloud_upload (sha256) WHERE sha256 IS NOT NULL;

-- state: not_required, pending, in_progress, succeeded, failed. A lease is a name in ``lease`` and its end in ``due_at``:
-- after its end the conversion is due again.
CREATE TABLE conversion (
    number      INTEGER PRIMARY KEY,
    version     INTEGER NOT NULL UNIQUE REFERENCES cloud_version (number) ON DELETE CASCADE,
    state       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,                -- number of all attempts
    failures    INTEGER NOT NULL,                -- failed attempts since the last request for the conversion
    error_class TEXT,
    error       TEXT,
    due_at      INTEGER NOT NULL,
    lease       TEXT,
    started_at  INTEGER,
    finished_at INTEGER
);
CREATE INDEX conversion_open ON conversion (due_at, number) WHERE state IN ('pending', 'in_progress');

CREATE TABLE conversion_output (
    conversion   INTEGER NOT NULL REFERENCES conversion (number) ON DELETE CASCADE,
    position     INTEGER NOT NULL,
    name         TEXT NOT NULL,
    content_type TEXT NOT NULL,
    sha256       TEXT NOT NULL REFERENCES blob (sha256),
    size         INTEGER NOT NULL,
    PRIMARY KEY (conversion, position)
);
CREATE INDEX conversion_output_by_sha256 ON conversion_output (sha256);

-- Instants are milliseconds since 1970 in UTC, except observed_at (microseconds). Text compares byte by byte
-- (SQLite's BINARY, PostgreSQL's "C"), so both sort alike.

CREATE TABLE api_key (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    principal    TEXT NOT NULL,
    scopes       TEXT NOT NULL,             -- a JSON list
    last_four    TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,                   -- NULL: never
    last_used_at INTEGER,
    revoked_at   INTEGER
) WITHOUT ROWID;

-- A key id has more than one secret only while a rotation overlaps.
CREATE TABLE api_key_secret (
    key_id      TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    sha256      BLOB NOT NULL,
    valid_until INTEGER,                    -- NULL: as long as the key
    PRIMARY KEY (key_id, sha256)
) WITHOUT ROWID;

-- A role on one workspace, or on all of them (workspace_id empty).
CREATE TABLE access_grant (
    principal    TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    role         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (principal, workspace_id, role)
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
    sink_count           INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE block (
    id          TEXT NOT NULL PRIMARY KEY,
    workspace   INTEGER NOT NULL REFERENCES workspace (number),
    parent_id   TEXT REFERENCES block (id), -- NULL: the root
    label       TEXT NOT NULL,
    order_index REAL NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    updated_by  TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX block_root ON block (workspace) WHERE parent_id IS NULL;
CREATE INDEX block_by_workspace ON block (workspace, parent_id, order_index);

CREATE TABLE data_sink (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    workspace   INTEGER NOT NULL REFERENCES workspace (number),
    serial      INTEGER NOT NULL,
    label       TEXT NOT NULL,
    description TEXT,
    tags        TEXT,
    icon        TEXT,                       -- a JSON object
    entry_count INTEGER NOT NULL DEFAULT 0,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    updated_by  TEXT NOT NULL,
    UNIQUE (workspace, serial)
);

-- Rows are appended by number and found by (sink, key). There is no index over every id: ids are random, and a second
-- random B-tree halves the rate of bulk writes. An id that the service made holds its row's number, scrambled, in its
-- last twelve digits (workspaced.data_sinks.identity); only ids that clients supplied are indexed.
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
    updated_by  TEXT NOT NULL
);
CREATE UNIQUE INDEX data_sink_entry_by_key ON data_sink_entry (sink, key);
CREATE UNIQUE INDEX data_sink_entry_by_supplied_id ON data_sink_entry (id) WHERE id_supplied;

-- One row: the last number given to an entry, and this database's own offset of the scrambling.
CREATE TABLE data_sink_entry_numbers (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    last_number INTEGER NOT NULL,
    scramble    INTEGER NOT NULL
);
INSERT INTO data_sink_entry_numbers VALUES (1, 0, random() & 0xffffffffffff);

-- Answers kept for repetition (Idempotency-Key); numbered in order of time, so the oldest are the lowest.
CREATE TABLE idempotent_answer (
    number      INTEGER PRIMARY KEY,
    slot        BLOB NOT NULL UNIQUE,       -- digest of API key, method, path and Idempotency-Key
    fingerprint BLOB NOT NULL,              -- digest of query and body
    status      INTEGER NOT NULL,
    headers     TEXT NOT NULL,              -- a JSON list of pairs
    body        BLOB NOT NULL,
    created_at  INTEGER NOT NULL
);

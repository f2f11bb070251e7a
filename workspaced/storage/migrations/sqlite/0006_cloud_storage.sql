-- Files, what their versions hold, uploads under way, and conversions. Instants are milliseconds since 1970; sha256 is 64
-- lower-case hexadecimal digits, the name of the bytes. Bytes that no row here names are dropped.

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

CREATE TABLE cloud_version (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    file         INTEGER NOT NULL REFERENCES cloud_file (number) ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,               -- 1, 2, 3 … of its file
    file_name    TEXT NOT NULL,
    content_type TEXT NOT NULL,
    sha256       TEXT NOT NULL,
    size         INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    created_by   TEXT NOT NULL,
    UNIQUE (file, ordinal)
);
CREATE INDEX cloud_version_by_sha256 ON cloud_version (sha256);

-- An upload by link: offered, then received (sha256 and size are there), then completed.
CREATE TABLE cloud_upload (
    number          INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    file            INTEGER NOT NULL REFERENCES cloud_file (number) ON DELETE CASCADE,
    file_name       TEXT NOT NULL,
    content_type    TEXT NOT NULL,
    expected_size   INTEGER,
    expected_sha256 TEXT,
    expires_at      INTEGER NOT NULL,
    sha256          TEXT,
    size            INTEGER,
    received_at     INTEGER,
    completed_at    INTEGER
);
CREATE INDEX cloud_upload_by_file ON cloud_upload (file, number);
CREATE INDEX cloud_upload_by_expiry ON cloud_upload (expires_at);
CREATE INDEX cloud_upload_by_sha256 ON cloud_upload (sha256) WHERE sha256 IS NOT NULL;

-- state: not_required, pending, in_progress, succeeded, failed. A lease is a name in ``lease`` and its end in ``due_at``:
-- one that has run out makes the conversion due again by itself.
CREATE TABLE conversion (
    number      INTEGER PRIMARY KEY,
    version     INTEGER NOT NULL UNIQUE REFERENCES cloud_version (number) ON DELETE CASCADE,
    state       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,                -- ever
    failures    INTEGER NOT NULL,                -- since somebody asked for it
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
    sha256       TEXT NOT NULL,
    size         INTEGER NOT NULL,
    PRIMARY KEY (conversion, position)
);
CREATE INDEX conversion_output_by_sha256 ON conversion_output (sha256);

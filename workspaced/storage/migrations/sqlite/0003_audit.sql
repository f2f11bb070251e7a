-- Who did what, one row a change, a bulk request being one; values and secrets are never in it. Rows are only ever
-- appended, and dropped when they have had their time. What they are about may be gone, so nothing is referred to.
CREATE TABLE audit_row (
    number       INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    principal    TEXT NOT NULL,
    key_id       TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    address      TEXT NOT NULL,
    action       TEXT NOT NULL,
    resource_id  TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    changed      TEXT NOT NULL,             -- a JSON list of members
    counts       TEXT NOT NULL              -- a JSON object
);
CREATE INDEX audit_row_by_workspace ON audit_row (workspace_id, at);
CREATE INDEX audit_row_by_time ON audit_row (at);

-- A workspace whose purge has begun can't be restored: part of it is gone.
ALTER TABLE workspace ADD COLUMN purging INTEGER NOT NULL DEFAULT 0;
CREATE INDEX workspace_deleted ON workspace (deleted_at) WHERE deleted_at IS NOT NULL;

-- The newest epoch and attempt of each writer in a workspace; a request with an older one is refused. `raised_at`: milliseconds
-- since 1970.
CREATE TABLE writer (
    workspace TEXT NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    name      TEXT NOT NULL,
    epoch     INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    raised_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) WITHOUT ROWID;
CREATE INDEX writer_by_age ON writer (raised_at);

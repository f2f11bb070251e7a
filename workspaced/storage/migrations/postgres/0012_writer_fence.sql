-- As SQLite's.
CREATE TABLE writer (
    workspace text COLLATE "C" NOT NULL REFERENCES workspace (id) ON DELETE CASCADE,
    name      text COLLATE "C" NOT NULL,
    epoch     bigint NOT NULL,
    attempt   bigint NOT NULL,
    raised_at bigint NOT NULL,
    PRIMARY KEY (workspace, name)
);
CREATE INDEX writer_by_age ON writer (raised_at);

-- The grants of a guest's key hold only in workspaces that let guests in.
ALTER TABLE api_key ADD COLUMN guest INTEGER NOT NULL DEFAULT 0;

-- What was chosen at the first start and holds from then on, since records that clients know show it.
CREATE TABLE fixed_setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

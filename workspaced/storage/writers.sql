-- The newest epoch and attempt of each writer.

-- name: find
-- Returns the row if it is not older than the request. PostgreSQL keeps the row unchanged until the transaction ends.
SELECT epoch, attempt FROM writer
WHERE workspace = :workspace AND name = :name AND (epoch, attempt) >= (:epoch, :attempt)

-- name: raise
INSERT INTO writer (workspace, name, epoch, attempt, raised_at)
SELECT id, :name, :epoch, :attempt, :now FROM workspace WHERE id = :workspace
{unless_newer}

-- name: raise_everywhere
INSERT INTO writer (workspace, name, epoch, attempt, raised_at)
SELECT id, :name, :epoch, :attempt, :now FROM workspace WHERE true
{unless_newer}

-- name: unless_newer
ON CONFLICT (workspace, name) DO UPDATE
SET epoch = excluded.epoch, attempt = excluded.attempt, raised_at = excluded.raised_at
WHERE (writer.epoch, writer.attempt) < (excluded.epoch, excluded.attempt)

-- name: newest_epoch
SELECT coalesce(max(epoch), 1) FROM writer WHERE name = :name

-- name: drop_older
DELETE FROM writer WHERE (workspace, name) IN (
    SELECT workspace, name FROM writer WHERE raised_at < :before ORDER BY raised_at LIMIT :most)

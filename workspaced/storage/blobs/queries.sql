-- Rows of stored bytes. workspaced/resources/cloud_storage/queries.sql has the statements on records that refer to these rows.

-- name: find
SELECT name, size, unused_since FROM blob WHERE sha256 = :sha256

-- name: announce
-- The retention of an existing unused row begins again.
INSERT INTO blob (sha256, name, size, unused_since) VALUES (:sha256, :name, :size, :now)
ON CONFLICT (sha256) DO UPDATE
SET unused_since = CASE WHEN blob.unused_since IS NULL THEN NULL ELSE excluded.unused_since END
RETURNING name

-- name: use
-- The row is changed each time, so that a concurrent deletion of an unused row checks the row again.
UPDATE blob SET unused_since = NULL WHERE sha256 = :sha256 AND name = :name

-- name: page
SELECT sha256, name, size, unused_since FROM blob WHERE sha256 > :after ORDER BY sha256 LIMIT :most

-- Rows of stored bytes. What refers to them is in workspaced/resources/cloud_storage/queries.sql.

-- name: find
SELECT name, size, unused_since FROM blob WHERE sha256 = :sha256

-- name: announce
-- An unused row is kept from now on for as long as a new one.
INSERT INTO blob (sha256, name, size, unused_since) VALUES (:sha256, :name, :size, :now)
ON CONFLICT (sha256) DO UPDATE
SET unused_since = CASE WHEN blob.unused_since IS NULL THEN NULL ELSE excluded.unused_since END
RETURNING name

-- name: use
-- It changes the row each time, so that a concurrent deletion of an unused row looks at it again.
UPDATE blob SET unused_since = NULL WHERE sha256 = :sha256 AND name = :name

-- name: page
SELECT sha256, name, size, unused_since FROM blob WHERE sha256 > :after ORDER BY sha256 LIMIT :most

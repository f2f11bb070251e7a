-- What PostgreSQL says otherwise about files. Whoever changes a file holds its workspace's row, then the file, from the reading
-- on: always in this order, as whoever adds one does, so that nobody waits in a circle.

-- name: lock_home
SELECT number, id, public_can_read, exports_enabled FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL
FOR NO KEY UPDATE

-- hold: find_file
FOR NO KEY UPDATE OF w, f

-- hold: find_upload
FOR NO KEY UPDATE OF u

-- name: sum_bytes
-- A sum of bigint is numeric otherwise, which Python reads as a Decimal.
SELECT coalesce(sum(v.size), 0)::bigint
FROM cloud_file f JOIN cloud_version v ON v.file = f.number WHERE f.workspace = :workspace

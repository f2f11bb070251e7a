-- PostgreSQL's variants of the statements of files. A transaction that changes or adds a file locks rows when it reads them:
-- first the workspace, then the file. All transactions use this order, so they can't deadlock.

-- name: lock_workspace
SELECT number, id, public_can_read, exports_enabled FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL
FOR NO KEY UPDATE

-- hold: find_file
FOR NO KEY UPDATE OF w, f

-- hold: find_upload
FOR NO KEY UPDATE OF u

-- name: sum_bytes
-- Without the cast, the sum of bigint values would have the type numeric, which Python reads as Decimal.
SELECT coalesce(sum(v.size), 0)::bigint
FROM cloud_file f JOIN cloud_version v ON v.file = f.number WHERE f.workspace = :workspace

-- hold: find_any
FOR NO KEY UPDATE OF w, f

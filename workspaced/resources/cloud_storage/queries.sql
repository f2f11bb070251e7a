-- Files, versions, uploads. The columns of a file are in the order of values.StoredFile. No request finds a deleted file, or a file
-- of a deleted workspace.

-- name: find_workspace
SELECT number, id, public_can_read, exports_enabled FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL

-- name: lock_workspace
-- A transaction that adds a file locks its workspace's row, so that concurrent additions can't exceed a quota.
UPDATE workspace SET version = version WHERE id = :workspace_id AND deleted_at IS NULL
RETURNING number, id, public_can_read, exports_enabled

-- name: raise_workspace_version
-- The record of a workspace contains the ids of its available files, so added and removed files raise its version.
UPDATE workspace
SET version = version + 1, updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :workspace

-- name: file_columns
f.number, f.id, w.number, w.id, w.public_can_read, w.exports_enabled, f.file_name, f.content_type, f.description,
       f.tags, f.metadata, f.current_version, f.version, f.created_at, f.updated_at, f.created_by, f.updated_by,
       v.number, v.id, v.sha256, v.size, c.number, c.state, c.attempt, c.error_class, c.error, c.started_at, c.finished_at

-- name: find_file
SELECT {file_columns}
FROM cloud_file f JOIN workspace w ON w.number = f.workspace
LEFT JOIN cloud_version v ON v.file = f.number AND v.ordinal = f.current_version
LEFT JOIN conversion c ON c.version = v.number
WHERE f.id = :id AND f.deleted_at IS NULL AND w.deleted_at IS NULL

-- name: list_files
SELECT {file_columns}
FROM cloud_file f JOIN workspace w ON w.number = f.workspace
JOIN cloud_version v ON v.file = f.number AND v.ordinal = f.current_version
LEFT JOIN conversion c ON c.version = v.number
WHERE f.workspace = :workspace AND f.deleted_at IS NULL
ORDER BY f.created_at, f.id

-- name: id_in_use
-- An id is in use as long as its row exists, deleted or not.
SELECT 1 FROM cloud_file WHERE id = :id

-- name: count_files
SELECT count(*) FROM cloud_file WHERE workspace = :workspace AND deleted_at IS NULL

-- name: sum_bytes
-- The bytes of every version count, also of versions of deleted files, because these bytes are still stored.
SELECT coalesce(sum(v.size), 0) FROM cloud_file f JOIN cloud_version v ON v.file = f.number WHERE f.workspace = :workspace

-- name: insert_file
INSERT INTO cloud_file (id, workspace, file_name, content_type, current_version, version, created_at, updated_at,
                        created_by, updated_by)
VALUES (:id, :workspace, :file_name, :content_type, 0, 1, :now, :now, :actor, :actor)

-- name: next_version
-- The update of the row takes the ordinal, so that concurrent uploads get different ordinals.
UPDATE cloud_file
SET current_version = current_version + 1, file_name = :file_name, content_type = :content_type, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number RETURNING current_version

-- name: insert_version
INSERT INTO cloud_version (id, file, ordinal, file_name, content_type, sha256, size, created_at, created_by)
VALUES (:id, :file, :ordinal, :file_name, :content_type, :sha256, :size, :now, :actor) RETURNING number

-- name: list_versions
SELECT number, id, ordinal, file_name, content_type, sha256, size, created_at, created_by
FROM cloud_version WHERE file = :file ORDER BY ordinal DESC

-- name: find_version
SELECT number, id, ordinal, file_name, content_type, sha256, size, created_at, created_by
FROM cloud_version WHERE file = :file AND id = :id

-- name: outputs_of_version
SELECT o.name, o.content_type, o.sha256, o.size
FROM conversion c JOIN conversion_output o ON o.conversion = c.number WHERE c.version = :version ORDER BY o.position

-- name: update_file
UPDATE cloud_file
SET file_name = :file_name, content_type = :content_type, description = :description, tags = :tags,
    version = version + 1, updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: update_metadata
UPDATE cloud_file
SET metadata = :metadata, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: delete_file
UPDATE cloud_file
SET deleted_at = :now, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: insert_upload
INSERT INTO cloud_upload (id, file, file_name, content_type, expected_size, expected_sha256, expires_at, key_id, secret)
SELECT :id, number, :file_name, :content_type, :expected_size, :expected_sha256, :expires_at, :key_id, :secret
FROM cloud_file WHERE id = :file_id

-- name: uploads
SELECT u.number, u.id, f.id, u.file_name, u.content_type, u.expected_size, u.expected_sha256, u.expires_at, u.sha256, u.size,
       u.received_at, u.completed_at, w.id, u.key_id, u.secret
FROM cloud_upload u JOIN cloud_file f ON f.number = u.file JOIN workspace w ON w.number = f.workspace

-- name: find_upload
{uploads}
WHERE u.id = :id AND f.deleted_at IS NULL AND w.deleted_at IS NULL

-- name: uploads_of_file
{uploads}
WHERE u.file = :file

-- name: receive_upload
-- A second upload by the same link changes no row. received_at has the order in which the uploads of a file are received,
-- although :now may be the time at which a long upload began.
UPDATE cloud_upload
SET sha256 = :sha256, size = :size,
    received_at = (SELECT CASE WHEN max(o.received_at) >= :now THEN max(o.received_at) + 1 ELSE :now END
                   FROM cloud_upload o WHERE o.file = cloud_upload.file)
WHERE number = :number AND sha256 IS NULL

-- name: complete_upload
UPDATE cloud_upload SET completed_at = :now WHERE number = :number AND completed_at IS NULL

-- name: drop_old_uploads
DELETE FROM cloud_upload
WHERE number IN (SELECT number FROM cloud_upload WHERE expires_at <= :before ORDER BY expires_at LIMIT :most)

-- name: drop_empty_files
-- Remove old files without a version and without an upload link.
DELETE FROM cloud_file
WHERE number IN (SELECT f.number FROM cloud_file f
                 WHERE f.current_version = 0 AND f.created_at <= :before
                   AND NOT EXISTS (SELECT 1 FROM cloud_upload u WHERE u.file = f.number)
                 ORDER BY f.created_at LIMIT :most)

-- name: purge_deleted
DELETE FROM cloud_file
WHERE number IN (SELECT number FROM cloud_file WHERE deleted_at <= :before ORDER BY deleted_at LIMIT :most)
RETURNING id, (SELECT w.id FROM workspace w WHERE w.number = workspace)

-- name: purge_workspace
DELETE FROM cloud_file WHERE number IN (SELECT number FROM cloud_file WHERE workspace = :workspace LIMIT :most)

-- name: references
EXISTS (SELECT 1 FROM cloud_version WHERE sha256 = b.sha256)
            OR EXISTS (SELECT 1 FROM conversion_output WHERE sha256 = b.sha256)
            OR EXISTS (SELECT 1 FROM cloud_upload WHERE sha256 = b.sha256)

-- name: page_of_blobs
-- ``in_use``: whether a version, an output or an upload refers to the bytes.
SELECT b.sha256, b.unused_since IS NOT NULL, {references} AS in_use
FROM blob b WHERE b.sha256 > :after ORDER BY b.sha256 LIMIT :most

-- name: mark_unused
UPDATE blob SET unused_since = :now WHERE sha256 = :sha256 AND unused_since IS NULL

-- name: unmark_used
UPDATE blob SET unused_since = NULL WHERE sha256 = :sha256

-- name: drop_unused
-- The first condition repeats the inner condition: PostgreSQL checks it again if a concurrent transaction changed the row.
DELETE FROM blob
WHERE unused_since <= :before
  AND sha256 IN (SELECT b.sha256 FROM blob b
                 WHERE b.unused_since <= :before AND NOT ({references}) ORDER BY b.unused_since LIMIT :most)
RETURNING name

-- name: insert_dropped
INSERT INTO dropped_blob (name) VALUES

-- name: dropped
SELECT name FROM dropped_blob ORDER BY name LIMIT :most

-- name: forget_dropped
DELETE FROM dropped_blob WHERE name = :name

-- name: all_files
-- The files of one workspace or, if :workspace_id is empty, all files. The size of the current version is 0 before an upload.
SELECT f.id, w.id, f.file_name, coalesce(v.size, 0), f.current_version, f.created_at, f.deleted_at
FROM cloud_file f JOIN workspace w ON w.number = f.workspace
LEFT JOIN cloud_version v ON v.file = f.number AND v.ordinal = f.current_version
WHERE w.id = :workspace_id OR :workspace_id = ''
ORDER BY f.created_at, f.id

-- name: find_any
SELECT w.number, w.id, f.deleted_at, w.deleted_at, f.file_name
FROM cloud_file f JOIN workspace w ON w.number = f.workspace WHERE f.id = :id

-- name: restore
UPDATE cloud_file
SET deleted_at = NULL, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE id = :id

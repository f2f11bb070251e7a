-- Files, deleted or not, for operators of the service.

-- name: all_files
-- Of one workspace, or (empty) of all. The size is that of the current version; 0 before anything is uploaded.
SELECT f.id, w.id, f.file_name, coalesce(v.size, 0), f.current_version, f.created_at, f.deleted_at
FROM cloud_file f JOIN workspace w ON w.number = f.workspace
LEFT JOIN cloud_version v ON v.file = f.number AND v.ordinal = f.current_version
WHERE w.id = :workspace_id OR :workspace_id = ''
ORDER BY f.created_at, f.id

-- name: find_any
SELECT w.number, w.id, f.deleted_at, w.deleted_at
FROM cloud_file f JOIN workspace w ON w.number = f.workspace WHERE f.id = :id

-- name: restore
UPDATE cloud_file
SET deleted_at = NULL, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE id = :id

-- name: raise_workspace_version
-- The workspace's record has the ids of its available files, so its version rises with their number.
UPDATE workspace
SET version = version + 1, updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :workspace

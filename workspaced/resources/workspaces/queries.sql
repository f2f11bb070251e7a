-- Workspaces, each with its root block. No request finds a deleted workspace.

-- name: insert_workspace
INSERT INTO workspace (id, label, root_block, public_can_read, exports_enabled, guests_enabled, current_version,
                       statuses, version, created_at, updated_at, created_by, updated_by, block_count)
VALUES (:id, :label, :root_block, :public_can_read, :exports_enabled, :guests_enabled, :current_version,
        :statuses, 1, :now, :now, :actor, :actor, 1)

-- name: insert_root_block
INSERT INTO block (id, workspace, parent_id, label, order_index, version, created_at, updated_at, created_by, updated_by)
SELECT :root_block, number, NULL, :label, 0, 1, :now, :now, :actor, :actor FROM workspace WHERE id = :id

-- name: id_in_use
-- An id is in use as long as its row exists, deleted or not.
SELECT 1 FROM workspace WHERE id = :id

-- name: find_workspace
SELECT number, id, label, root_block, public_can_read, exports_enabled, guests_enabled, current_version, statuses,
       version, created_at, updated_at, created_by, updated_by
FROM workspace WHERE id = :id AND deleted_at IS NULL

-- name: list_workspaces
SELECT number, id, label, root_block, public_can_read, exports_enabled, guests_enabled, current_version, statuses,
       version, created_at, updated_at, created_by, updated_by
FROM workspace WHERE deleted_at IS NULL ORDER BY created_at, id

-- name: block_ids
-- The ids of all blocks, the root first. The order does not depend on the tree: only a new or removed block raises the version.
SELECT id FROM block WHERE workspace = :number ORDER BY parent_id IS NOT NULL, created_at, id

-- name: attachment_ids
-- The ids of the available files, which have at least one version.
SELECT id FROM cloud_file
WHERE workspace = :number AND deleted_at IS NULL AND current_version > 0 ORDER BY created_at, id

-- name: update_workspace
UPDATE workspace
SET label = :label, public_can_read = :public_can_read, exports_enabled = :exports_enabled,
    guests_enabled = :guests_enabled, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: delete_workspace
UPDATE workspace
SET deleted_at = :now, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: all_workspaces
SELECT id, label, created_at, deleted_at, purging FROM workspace ORDER BY created_at, id

-- name: find_any
SELECT deleted_at, purging, label FROM workspace WHERE id = :id

-- name: restore
UPDATE workspace
SET deleted_at = NULL, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE id = :id

-- name: due
-- Deleted workspaces that can no longer be restored.
SELECT number, id FROM workspace WHERE deleted_at < :before ORDER BY deleted_at, id

-- name: begin_purge
UPDATE workspace SET purging = 1 WHERE number = :number AND deleted_at < :before

-- name: purge_workspace
DELETE FROM workspace WHERE number = :number

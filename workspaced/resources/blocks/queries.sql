-- Blocks. The columns of a block are in the order of values.StoredBlock. No request finds a block of a deleted workspace. Every
-- statement names the workspace, so an id of another workspace finds nothing (contract G15).

-- name: find_workspace
SELECT number, root_block FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL

-- name: lock_workspace
-- A transaction that changes the tree locks the workspace's row, so two concurrent moves can't form a cycle (contract B4).
UPDATE workspace SET version = version WHERE id = :workspace_id AND deleted_at IS NULL RETURNING number, root_block

-- name: count_blocks
-- The record of a workspace contains the ids of its blocks, so added and removed blocks raise its version.
UPDATE workspace
SET block_count = block_count + :added, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE id = :workspace_id AND deleted_at IS NULL RETURNING number, root_block, block_count

-- name: find_block
SELECT b.id, w.id, b.parent_id, b.order_index, b.version, b.created_at, b.updated_at, b.created_by, b.updated_by,
       b.label, b.description, b.part_number, b.multiplicity, b.pdm_enabled, b.property_groups, b.instances,
       b.preview_custom_link, b.preview_source, b.figures, b.icon, b.attachments, b.external_links, b.pdm_thumbnail,
       b.block_statuses, b.type
FROM workspace w JOIN block b ON b.workspace = w.number
WHERE b.id = :id AND w.id = :workspace_id AND w.deleted_at IS NULL

-- name: places
SELECT id, parent_id, order_index, label, type, created_at, updated_at FROM block WHERE workspace = :workspace

-- name: path
-- The ids on the path from the root to a block; no row if the workspace has no such block.
WITH RECURSIVE up (id, parent_id, steps) AS (
    SELECT id, parent_id, 0 FROM block WHERE id = :id AND workspace = :workspace
    UNION ALL
    SELECT b.id, b.parent_id, up.steps + 1 FROM up CROSS JOIN block b WHERE b.id = up.parent_id
)
SELECT id FROM up ORDER BY steps DESC

-- name: children
SELECT id FROM block WHERE workspace = :workspace AND parent_id = :id ORDER BY order_index, id

-- name: subtree
-- A block and all blocks below it, the deepest first, with their depth below the block.
WITH RECURSIVE down (id, steps) AS (
    SELECT id, 0 FROM block WHERE id = :id AND workspace = :workspace
    UNION ALL
    SELECT b.id, down.steps + 1 FROM down CROSS JOIN block b WHERE b.workspace = :workspace AND b.parent_id = down.id
)
SELECT id, steps FROM down ORDER BY steps DESC, id

-- name: id_in_use
SELECT 1 FROM block WHERE id = :id

-- name: last_order_index
SELECT max(order_index) FROM block WHERE workspace = :workspace AND parent_id = :parent_id

-- name: insert_block
INSERT INTO block (id, workspace, parent_id, order_index, version, created_at, updated_at, created_by, updated_by,
                   label, description, part_number, multiplicity, pdm_enabled, property_groups, instances,
                   preview_custom_link, preview_source, figures, icon, attachments, external_links, pdm_thumbnail,
                   block_statuses, type)
VALUES (:id, :workspace, :parent_id, :order_index, 1, :now, :now, :actor, :actor,
        :label, :description, :part_number, :multiplicity, :pdm_enabled, :property_groups, :instances,
        :preview_custom_link, :preview_source, :figures, :icon, :attachments, :external_links, :pdm_thumbnail,
        :block_statuses, :type)

-- name: update_block
UPDATE block
SET parent_id = :parent_id, order_index = :order_index, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor, label = :label, description = :description, part_number = :part_number,
    multiplicity = :multiplicity, pdm_enabled = :pdm_enabled, property_groups = :property_groups,
    instances = :instances, preview_custom_link = :preview_custom_link, preview_source = :preview_source,
    figures = :figures, icon = :icon, attachments = :attachments, external_links = :external_links,
    pdm_thumbnail = :pdm_thumbnail, block_statuses = :block_statuses, type = :type
WHERE id = :id

-- name: raise_version
-- The record of a block contains its children, so the version of the block rises if the children or their order change.
UPDATE block SET version = version + 1 WHERE id = :id

-- name: raise_subtree_versions
-- The paths of all blocks below the block change, so their versions rise.
WITH RECURSIVE down (id) AS (
    SELECT id FROM block WHERE workspace = :workspace AND parent_id = :id
    UNION ALL
    SELECT b.id FROM down CROSS JOIN block b WHERE b.workspace = :workspace AND b.parent_id = down.id
)
UPDATE block SET version = version + 1 WHERE id IN (SELECT id FROM down)

-- name: set_parent
UPDATE block
SET parent_id = :parent_id, order_index = :order_index, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE id = :id

-- name: set_root
UPDATE workspace SET root_block = :id WHERE number = :workspace

-- name: delete_subtree
WITH RECURSIVE down (id) AS (
    SELECT id FROM block WHERE id = :id AND workspace = :workspace
    UNION ALL
    SELECT b.id FROM down CROSS JOIN block b WHERE b.workspace = :workspace AND b.parent_id = down.id
)
DELETE FROM block WHERE id IN (SELECT id FROM down)

-- name: purge_blocks
-- Remove only blocks without children, because a child refers to its parent.
DELETE FROM block
WHERE id IN (SELECT b.id FROM block b
             WHERE b.workspace = :workspace AND NOT EXISTS (SELECT 1 FROM block c WHERE c.parent_id = b.id) LIMIT :most)

-- Whoever changes a block holds its workspace's row, then the block: always in this order, so that the changes of one
-- tree wait for each other and never in a circle.

-- name: lock_workspace
SELECT number, root_block FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL FOR NO KEY UPDATE

-- hold: find_block
FOR NO KEY UPDATE OF w, b

-- A transaction that changes a block locks the row of the workspace, then the block. All transactions use this order, so
-- changes of one tree can't deadlock.

-- name: lock_workspace
SELECT number, root_block FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL FOR NO KEY UPDATE

-- hold: find_block
FOR NO KEY UPDATE OF w, b

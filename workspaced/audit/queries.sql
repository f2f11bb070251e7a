-- The audit log.

-- name: insert
INSERT INTO audit_row (at, principal, key_id, client_id, request_id, address, action, resource_id, workspace_id,
                       changed, counts) VALUES

-- name: count
SELECT count(*) FROM audit_row
WHERE at >= :from AND at < :to AND (action = :action OR substr(action, 1, length(:prefix)) = :prefix)

-- name: count_of_workspace
SELECT count(*) FROM audit_row
WHERE workspace_id = :workspace_id AND at >= :from AND at < :to
  AND (action = :action OR substr(action, 1, length(:prefix)) = :prefix)

-- name: oldest_first
SELECT number, at, principal, key_id, client_id, request_id, address, action, resource_id, workspace_id, changed, counts
FROM audit_row
WHERE at >= :from AND at < :to AND (action = :action OR substr(action, 1, length(:prefix)) = :prefix)
ORDER BY at, number LIMIT :take OFFSET :skip

-- name: newest_first
SELECT number, at, principal, key_id, client_id, request_id, address, action, resource_id, workspace_id, changed, counts
FROM audit_row
WHERE at >= :from AND at < :to AND (action = :action OR substr(action, 1, length(:prefix)) = :prefix)
ORDER BY at DESC, number DESC LIMIT :take OFFSET :skip

-- name: oldest_first_of_workspace
SELECT number, at, principal, key_id, client_id, request_id, address, action, resource_id, workspace_id, changed, counts
FROM audit_row
WHERE workspace_id = :workspace_id AND at >= :from AND at < :to
  AND (action = :action OR substr(action, 1, length(:prefix)) = :prefix)
ORDER BY at, number LIMIT :take OFFSET :skip

-- name: newest_first_of_workspace
SELECT number, at, principal, key_id, client_id, request_id, address, action, resource_id, workspace_id, changed, counts
FROM audit_row
WHERE workspace_id = :workspace_id AND at >= :from AND at < :to
  AND (action = :action OR substr(action, 1, length(:prefix)) = :prefix)
ORDER BY at DESC, number DESC LIMIT :take OFFSET :skip

-- name: any_before
SELECT 1 FROM audit_row WHERE at < :before LIMIT 1

-- name: drop_before
DELETE FROM audit_row WHERE number IN (SELECT number FROM audit_row WHERE at < :before ORDER BY at LIMIT :most)

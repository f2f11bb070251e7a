-- The audit log.

-- name: columns
number, at, principal, key_id, client_id, request_id, address, action, resource_id, resource_label, workspace_id, changed,
counts, origin

-- name: insert
INSERT INTO audit_row (at, principal, key_id, client_id, request_id, address, action, resource_id, resource_label, workspace_id,
                       changed, counts, origin) VALUES

-- name: count
-- Examines at most :walk rows. Returns the number of examined rows, and the number of examined rows with the action.
SELECT count(*), count(*) FILTER (WHERE action = :action OR substr(action, 1, length(:prefix)) = :prefix)
FROM (SELECT action FROM audit_row WHERE at >= :from AND at < :to LIMIT :walk) AS walked

-- name: count_of_workspace
SELECT count(*), count(*) FILTER (WHERE action = :action OR substr(action, 1, length(:prefix)) = :prefix)
FROM (SELECT action FROM audit_row WHERE workspace_id = :workspace_id AND at >= :from AND at < :to LIMIT :walk) AS walked

-- name: oldest_first
-- Examines at most :walk rows, beginning after the row with the number :after and the time :instant.
SELECT {columns}
FROM (SELECT {columns}
      FROM audit_row
      WHERE at >= :from AND at < :to AND (at <> :instant OR number > :after)
      ORDER BY at, number LIMIT :walk) AS walked
WHERE action = :action OR substr(action, 1, length(:prefix)) = :prefix
ORDER BY at, number LIMIT :take

-- name: oldest_first_end
-- Returns the last row of a walk of :walk + 1 rows; no row if there are fewer rows.
SELECT at, number FROM audit_row
WHERE at >= :from AND at < :to AND (at <> :instant OR number > :after)
ORDER BY at, number LIMIT 1 OFFSET :walk

-- name: newest_first
SELECT {columns}
FROM (SELECT {columns}
      FROM audit_row
      WHERE at >= :from AND at < :to AND (at <> :instant OR number < :after)
      ORDER BY at DESC, number DESC LIMIT :walk) AS walked
WHERE action = :action OR substr(action, 1, length(:prefix)) = :prefix
ORDER BY at DESC, number DESC LIMIT :take

-- name: newest_first_end
SELECT at, number FROM audit_row
WHERE at >= :from AND at < :to AND (at <> :instant OR number < :after)
ORDER BY at DESC, number DESC LIMIT 1 OFFSET :walk

-- name: oldest_first_of_workspace
SELECT {columns}
FROM (SELECT {columns}
      FROM audit_row
      WHERE workspace_id = :workspace_id AND at >= :from AND at < :to AND (at <> :instant OR number > :after)
      ORDER BY at, number LIMIT :walk) AS walked
WHERE action = :action OR substr(action, 1, length(:prefix)) = :prefix
ORDER BY at, number LIMIT :take

-- name: oldest_first_of_workspace_end
SELECT at, number FROM audit_row
WHERE workspace_id = :workspace_id AND at >= :from AND at < :to AND (at <> :instant OR number > :after)
ORDER BY at, number LIMIT 1 OFFSET :walk

-- name: newest_first_of_workspace
SELECT {columns}
FROM (SELECT {columns}
      FROM audit_row
      WHERE workspace_id = :workspace_id AND at >= :from AND at < :to AND (at <> :instant OR number < :after)
      ORDER BY at DESC, number DESC LIMIT :walk) AS walked
WHERE action = :action OR substr(action, 1, length(:prefix)) = :prefix
ORDER BY at DESC, number DESC LIMIT :take

-- name: newest_first_of_workspace_end
SELECT at, number FROM audit_row
WHERE workspace_id = :workspace_id AND at >= :from AND at < :to AND (at <> :instant OR number < :after)
ORDER BY at DESC, number DESC LIMIT 1 OFFSET :walk

-- name: any_before
SELECT 1 FROM audit_row WHERE at < :before LIMIT 1

-- name: drop_before
DELETE FROM audit_row WHERE number IN (SELECT number FROM audit_row WHERE at < :before ORDER BY at LIMIT :most)

-- Paused pipelines. A pipeline stays paused after restarts and renames, also while it is not configured.

-- If a pipeline is already paused, time and account of the first pause stay.
-- name: pause
UPDATE pipeline SET paused_at = ?, paused_by = ? WHERE name = ? AND paused_at IS NULL

-- name: pause_end
UPDATE pipeline SET paused_at = NULL, paused_by = NULL WHERE name = ? AND paused_at IS NOT NULL

-- name: pauses
SELECT l.name, l.paused_at, l.paused_by,
  (SELECT coalesce(sum(s.live), 0) FROM partition p CROSS JOIN segment s ON s.partition = p.id WHERE p.pipeline = l.id)
FROM pipeline l WHERE l.paused_at IS NOT NULL ORDER BY l.name

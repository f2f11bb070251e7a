-- The changes of a reading on a copy of the state file; see state_copy.py.

-- A written entry always gets a new segment, so the segments after the newest one of the original hold all changes.
-- name: planned_segment
SELECT id, sink, body FROM segment WHERE id > ? ORDER BY id LIMIT 1

-- name: planned_partition
SELECT l.name, p.name, k.workspace, k.name, p.sink FROM partition p JOIN pipeline l ON l.id = p.pipeline
JOIN sink k ON k.id = p.sink WHERE p.id = ?

-- name: planned_entries
SELECT count(*) FROM entry WHERE sink = ? AND partition = ? AND NOT removed

-- name: planned_rejections
SELECT position, reason FROM rejected WHERE partition = ? AND run >= ? ORDER BY id LIMIT ?

-- name: planned_newest_run
SELECT coalesce(max(id), 0) FROM run

-- name: planned_pipelines
SELECT name, changes FROM pipeline

-- name: planned_pending
SELECT id, sink, live FROM segment ORDER BY id

-- Unexplained entries that a comparison of the sink would remove; see check_unexplained. Entries that it selects because of
-- their author in the service are not counted.
-- name: planned_unexplained
SELECT count(*) FROM entry e LEFT JOIN partition p ON p.id = e.partition LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE e.sink = :sink AND NOT e.removed AND NOT (p.id IS NOT NULL AND p.sink = e.sink AND l.active AND NOT (p.retired AND l.whole))
  AND (:all OR (p.retired AND l.active AND p.sink = e.sink))

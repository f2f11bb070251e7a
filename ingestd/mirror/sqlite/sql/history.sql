-- The history of a partition, and earlier partitions with the same content.

-- name: history_partition
SELECT p.id, p.cursor, p.last_run, p.seen_at, CASE WHEN NOT p.awaiting THEN p.acknowledged_at END,
  (SELECT coalesce(sum(s.live), 0) FROM segment s WHERE s.partition = p.id),
  (SELECT count(*) FROM rejected r WHERE r.partition = p.id)
FROM partition p JOIN pipeline l ON l.id = p.pipeline
WHERE l.name = ? AND p.name = ?

-- name: history_run
SELECT id, started, ended, failure FROM run WHERE id = ?

-- The last reading with new content.
-- name: history_reading
SELECT id, records, created, updated, unchanged, removed, rejected, valueless, started, facts, ended FROM run
WHERE partition = ? AND facts <> '{}' AND ended IS NOT NULL AND failure = '' ORDER BY id DESC LIMIT 1

-- name: content_before
SELECT p.name, r.started FROM run r JOIN partition p ON p.id = r.partition
WHERE json_extract(r.facts, '$."file.sha256"') = :sha256 AND r.id < :run AND r.ended IS NOT NULL AND r.failure = ''
  AND p.pipeline = (SELECT q.pipeline FROM run c JOIN partition q ON q.id = c.partition WHERE c.id = :run)
ORDER BY r.id DESC LIMIT 1

-- name: partitions_newest
SELECT id, name FROM partition WHERE pipeline = (SELECT id FROM pipeline WHERE name = ?) AND last_run IS NOT NULL
ORDER BY last_run DESC LIMIT ?

-- name: runs_newest
SELECT id, started, ended, records, created, updated, unchanged, removed, rejected, valueless, failure, is_repeat
FROM run WHERE partition = ? ORDER BY id DESC LIMIT ?

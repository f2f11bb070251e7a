-- Former values of entries, and the times of deliveries.

-- Stores the present values of the given keys (a sorted JSON list) as former values, except unsent values of the same reading.
-- `:claimed`: the segments in open claims.
-- name: former_keep
INSERT INTO former (sink, key, value, data_type, partition, run, position, delivery, delivered_at, ended_at, ended_by, ending,
  value_run)
SELECT e.sink, e.key, e.value, e.data_type, e.partition, e.run, e.position,
  CASE WHEN s.id IS NOT NULL THEN CASE WHEN s.id IN (SELECT value FROM json_each(:claimed)) THEN 'sent' ELSE 'pending' END
    WHEN e.run = 0 THEN 'found'
    WHEN EXISTS (SELECT 1 FROM rejected r WHERE r.sink = e.sink AND r.key = e.key AND r.subject = 'entry') THEN 'rejected'
    ELSE 'delivered' END,
  CASE WHEN s.id IS NULL AND e.run <> 0 THEN (SELECT d.at FROM delivered d WHERE d.segment = abs(e.segment)) END, :at, :run, :ending,
  e.value_run
FROM json_each(:keys) j CROSS JOIN entry e ON e.sink = :sink AND e.key = j.value LEFT JOIN segment s ON s.id = e.segment
WHERE NOT e.removed AND (e.run <> :run OR s.id IS NULL OR s.id IN (SELECT value FROM json_each(:claimed)))

-- name: former_add_found
INSERT INTO former (sink, key, value, data_type, partition, run, delivery, ended_at, ended_by, ending)
VALUES (?, ?, ?, ?, 0, 0, 'found', ?, ?, ?)

-- A former value of each given key (a JSON list) was just stored, so one value is no longer among the `:kept` newest. It is
-- deleted if the next older value ended in the same hour. Otherwise the oldest value beyond `:most` is deleted.
-- name: former_drop_beyond
DELETE FROM former WHERE id IN (
  SELECT CASE WHEN CAST(x.ended_at / 3600 AS INTEGER) = (
      SELECT CAST(f.ended_at / 3600 AS INTEGER) FROM former f WHERE f.sink = :sink AND f.key = j.value
      ORDER BY f.id DESC LIMIT 1 OFFSET :kept + 1)
    THEN x.id
    ELSE (SELECT f.id FROM former f WHERE f.sink = :sink AND f.key = j.value ORDER BY f.id DESC LIMIT 1 OFFSET :most) END
  FROM json_each(:keys) j CROSS JOIN former x ON x.id = (
    SELECT f.id FROM former f WHERE f.sink = :sink AND f.key = j.value ORDER BY f.id DESC LIMIT 1 OFFSET :kept))

-- name: former_drop_oldest
DELETE FROM former WHERE id <= (SELECT max(id) FROM former) - ?

-- name: former_of_key
SELECT k.workspace, k.name, f.value, f.data_type, coalesce(l.name, ''), coalesce(p.name, ''), f.position, f.run, r.started, f.delivery, f.delivered_at,
  f.ended_at, f.ended_by, f.ending
FROM sink k CROSS JOIN former f ON f.sink = k.id AND f.key = ? LEFT JOIN partition p ON p.id = f.partition
LEFT JOIN pipeline l ON l.id = p.pipeline LEFT JOIN run r ON r.id = f.run
ORDER BY f.id DESC

-- name: delivered_add
INSERT INTO delivered (segment, at, operation, status) SELECT value, ?, ?, ? FROM json_each(?) WHERE true
ON CONFLICT (segment) DO UPDATE SET at = excluded.at, operation = excluded.operation, status = excluded.status

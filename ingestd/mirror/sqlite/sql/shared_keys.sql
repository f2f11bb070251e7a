-- Keys that more than one partition names, in the table `also_named`; see shared_keys.py.

-- name: also_named_add
INSERT INTO also_named (sink, key, partition, run, value, data_type, row_hash, position) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (sink, key, partition) DO UPDATE SET run = excluded.run, value = excluded.value, data_type = excluded.data_type,
  row_hash = excluded.row_hash, position = excluded.position

-- Stores the present entries of the given keys (a JSON list) as names by their partitions, before another partition owns them.
-- name: also_named_keep
INSERT OR REPLACE INTO also_named (sink, key, partition, run, value, data_type, row_hash, position)
SELECT e.sink, e.key, e.partition, e.run, coalesce(e.last_read, e.value), e.data_type, e.row_hash, e.position
FROM json_each(:keys) j CROSS JOIN entry e ON e.sink = :sink AND e.key = j.value

-- name: also_named_drop
DELETE FROM also_named WHERE sink = ? AND partition = ? AND key IN (SELECT value FROM json_each(?))

-- The names by one partition for the given keys (a JSON list).
-- name: also_named_by_partition
SELECT c.key, c.row_hash, c.run, CAST(c.position AS TEXT)
FROM json_each(:keys) j CROSS JOIN also_named c ON c.sink = :sink AND c.key = j.value AND c.partition = :partition

-- All names for the given keys (a JSON list), each with its pipeline, and whether the pipeline still reads the partition. For
-- each key, names by the pipeline of `:partition` come first, then the newest names.
-- name: also_named_of_keys
SELECT c.key, c.value, c.data_type, c.row_hash, c.position, c.partition, c.run, l.name,
  p.sink = c.sink AND l.active AND NOT p.retired AND (p.gone IS NULL OR p.deletes <> 'remove')
FROM json_each(:keys) j CROSS JOIN also_named c ON c.sink = :sink AND c.key = j.value
CROSS JOIN partition p ON p.id = c.partition CROSS JOIN pipeline l ON l.id = p.pipeline
ORDER BY j.key, p.pipeline IS (SELECT q.pipeline FROM partition q WHERE q.id = :partition) DESC, c.run DESC, c.partition

-- The names by a partition, each with the row hash of its record.
-- name: also_named_hashes
SELECT key, row_hash FROM also_named WHERE partition = :partition AND sink = :sink AND key > :after
  AND row_hash >> :shift & :mask = :range
ORDER BY key LIMIT :limit

-- Assigns a name to another record of the partition, which was rejected.
-- name: also_named_set_record
UPDATE also_named SET row_hash = ?, position = ? WHERE sink = ? AND key = ? AND partition = ?

-- The names by a partition that a complete reading, in `staging`, does not produce.
-- name: also_named_left_over
SELECT c.key FROM also_named c WHERE c.partition = :partition AND c.sink = :sink
  AND NOT EXISTS (SELECT 1 FROM staging g WHERE g.run = :run AND g.key = c.key)

-- name: also_named_at_positions
SELECT c.key FROM json_each(:positions) j CROSS JOIN also_named c ON c.partition = :partition AND c.position = j.value
WHERE c.sink = :sink

-- Deletes the names by a partition in sinks that it no longer writes.
-- name: also_named_elsewhere
DELETE FROM also_named WHERE partition = ? AND sink <> ?

-- The keys with an entry that no source explains now, although another partition names the key.
-- name: also_named_freed
SELECT DISTINCT c.sink, c.key FROM also_named c CROSS JOIN entry e ON e.sink = c.sink AND e.key = c.key
WHERE NOT e.removed AND NOT EXISTS (
  SELECT 1 FROM partition p CROSS JOIN pipeline l ON l.id = p.pipeline
  WHERE p.id = e.partition AND p.sink = e.sink AND l.active AND NOT p.retired)
ORDER BY c.sink, c.key

-- All keys with conflicts. The next statement returns the conflicts of the given keys (a JSON list), for their sentences.
-- name: conflicts_all
SELECT DISTINCT sink, key FROM rejected WHERE subject = 'conflict' ORDER BY sink, key

-- name: conflicts_of_keys
SELECT r.partition, l.name, r.key, r.position
FROM json_each(:keys) j CROSS JOIN rejected r ON r.sink = :sink AND r.key = j.value
CROSS JOIN partition p ON p.id = r.partition CROSS JOIN pipeline l ON l.id = p.pipeline
WHERE r.subject = 'conflict'

-- The conflicts of pipelines that are not configured now, and of partitions that their pipeline no longer reads.
-- name: conflicts_of_inactive
SELECT r.sink, r.partition, l.active, r.key FROM pipeline l CROSS JOIN partition p ON p.pipeline = l.id
CROSS JOIN rejected r ON r.partition = p.id WHERE NOT (l.active AND NOT p.retired) AND r.subject = 'conflict' ORDER BY r.sink, r.partition, r.key

-- name: conflict_describe
UPDATE rejected SET reason = ? WHERE sink = ? AND subject = 'conflict' AND partition = ? AND key = ?

-- The keys from a JSON list that the service lacks, as far as the mirror knows.
-- name: keys_lacking
SELECT j.value FROM json_each(:keys) j
WHERE EXISTS (SELECT 1 FROM rejected r WHERE r.sink = :sink AND r.key = j.value AND r.subject = 'entry')
  OR EXISTS (SELECT 1 FROM dropped x WHERE x.sink = :sink AND x.key = j.value)
  OR EXISTS (SELECT 1 FROM drift d CROSS JOIN entry e ON e.sink = d.sink AND e.key = d.key AND e.segment = d.segment
    WHERE d.sink = :sink AND d.key = j.value AND d.what = 'removed' AND d.reaction = '')

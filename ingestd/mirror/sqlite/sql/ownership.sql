-- Ownership of entries. An entry is explained if its partition belongs to an active pipeline that still reads the partition and
-- still writes the sink.

-- name: pipeline_sources
SELECT l.name, l.source, EXISTS (SELECT 1 FROM partition p WHERE p.pipeline = l.id) FROM pipeline l

-- name: pipeline_forget
DELETE FROM pipeline WHERE name = ?

-- name: pipeline_rename
UPDATE pipeline SET name = ?, read_at = NULL WHERE name = ?

-- name: pipeline_source_set
UPDATE pipeline SET source = ? WHERE name = ? AND source IS NOT ?

-- name: partitions_retire
UPDATE partition SET retired = 1 WHERE pipeline = (SELECT id FROM pipeline WHERE name = ?)

-- name: partition_in_use
UPDATE partition SET retired = 0 WHERE id = ?

-- The partition has lost entries, so its next reading begins at its start, if it is replayable.
-- name: partition_lost_entries
UPDATE partition SET cursor = CASE WHEN replayable THEN NULL ELSE cursor END, valid_through = min(valid_through, -1)
WHERE id = ? AND sink = ?

-- name: pipeline_read
UPDATE pipeline SET whole = :whole, read_at = coalesce(read_at, :began)
WHERE name = :name AND (whole <> :whole OR read_at IS NULL)

-- name: pipelines_unread_of_sink
UPDATE pipeline SET read_at = NULL WHERE id IN (SELECT pipeline FROM partition WHERE sink = ?)

-- A partition that the source no longer has explains its entries, unless entries of vanished records are removed.
-- name: partitions_explaining
SELECT p.id, l.name, p.deletes = 'remove'
FROM json_each(:partitions) j CROSS JOIN partition p ON p.id = j.value CROSS JOIN pipeline l ON l.id = p.pipeline
WHERE p.sink = :sink AND l.active AND NOT p.retired AND (p.gone IS NULL OR p.deletes <> 'remove')

-- The subquery lists the explaining partitions once, and not for each entry. This takes a third of the time of EXISTS.
-- name: unexplained_count
SELECT count(*) FROM entry e WHERE e.sink = :sink AND NOT e.removed AND e.partition NOT IN (
  SELECT q.id FROM partition q CROSS JOIN pipeline m ON m.id = q.pipeline
  WHERE q.sink = :sink AND m.active AND NOT (q.retired AND m.whole))

-- The unexplained entries of a sink, each with the pipeline that wrote it (NULL: found in the service).
-- name: unexplained_page
SELECT e.key, e.value, e.data_type, l.name, l.active, p.sink <> e.sink
FROM entry e LEFT JOIN partition p ON p.id = e.partition LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE e.sink = :sink AND e.key > :after AND NOT e.removed AND e.partition NOT IN (
  SELECT q.id FROM partition q CROSS JOIN pipeline m ON m.id = q.pipeline
  WHERE q.sink = :sink AND m.active AND NOT (q.retired AND m.whole))
ORDER BY e.key LIMIT :limit

-- name: entries_left_over
SELECT e.key, s.id IS NOT NULL FROM entry e LEFT JOIN segment s ON s.id = e.segment
WHERE e.sink = :sink AND e.partition = :partition AND NOT e.removed
  AND NOT EXISTS (SELECT 1 FROM staging g WHERE g.run = :run AND g.key = e.key)
ORDER BY e.key

-- name: partition_mapped
UPDATE partition SET remapped = 0 WHERE id = ?

-- name: entries_disown
UPDATE entry SET partition = 0, run = 0, value_run = NULL, row_hash = 0, position = NULL, segment = 0
WHERE sink = ? AND key IN (SELECT value FROM json_each(?))

-- The segments with entries of a partition in a sink that the service never had.
-- name: segments_of_unknown_sink
SELECT s.id, s.body FROM sink k CROSS JOIN segment s ON s.sink = k.id
WHERE k.id = :sink AND NOT k.adopted AND s.id IN (
  SELECT id FROM segment WHERE partition = :partition UNION SELECT segment FROM wait WHERE partition = :partition)
ORDER BY s.id

-- name: entries_of_segment
SELECT e.key, e.value, e.data_type, e.row_hash, e.position, e.run, e.removed
FROM json_each(:keys) j CROSS JOIN entry e ON e.sink = :sink AND e.key = j.value
WHERE e.segment = :segment AND e.partition = :partition ORDER BY e.key

-- name: entries_delete
DELETE FROM entry WHERE sink = ? AND key IN (SELECT value FROM json_each(?))

-- The sinks of the given pipelines (a JSON list). All active pipelines together also have the sinks that none of them writes.
-- name: sinks_of_pipelines
SELECT k.id, k.workspace, k.name FROM sink k WHERE k.id >= :sink AND (k.id IN (
    SELECT q.sink FROM partition q JOIN pipeline m ON m.id = q.pipeline WHERE m.name IN (SELECT value FROM json_each(:names)))
  OR (NOT EXISTS (SELECT 1 FROM pipeline a WHERE a.active AND a.name NOT IN (SELECT value FROM json_each(:names)))
    AND NOT EXISTS (SELECT 1 FROM pipeline a CROSS JOIN partition q ON q.sink = k.id AND q.pipeline = a.id WHERE a.active)))
ORDER BY k.id

-- Whether an active pipeline of the sink was not read completely since the sink was adopted.
-- name: sink_unread
SELECT EXISTS (SELECT 1 FROM partition p JOIN pipeline l ON l.id = p.pipeline
  WHERE p.sink = ? AND l.active AND l.read_at IS NULL)

-- name: sink_adopted
UPDATE sink SET adopted_at = :at, earlier = max(earlier, :earlier) WHERE id = :sink

-- name: sink_written_before
UPDATE sink SET earlier = 1 WHERE workspace = ? AND addressed_by = ? AND name = ? AND NOT earlier

-- name: sink_adoption
SELECT adopted, adopted_at, earlier FROM sink WHERE id = ?

-- name: pipeline_adopted_at
SELECT k.adopted_at FROM pipeline l
JOIN partition p ON p.id = (SELECT q.id FROM partition q WHERE q.pipeline = l.id ORDER BY q.last_run DESC LIMIT 1)
JOIN sink k ON k.id = p.sink WHERE l.name = ?

-- The authors of explained entries that the service has unchanged. Two rows are enough to show that there are several authors.
-- name: check_authors
SELECT DISTINCT s.author FROM entry e CROSS JOIN temp.seen s ON s.key = e.key AND s.value IS e.value
WHERE e.sink = :sink AND NOT e.removed AND abs(e.segment) NOT IN (SELECT segment FROM temp.held) AND EXISTS (
  SELECT 1 FROM partition q CROSS JOIN pipeline m ON m.id = q.pipeline
  WHERE q.id = e.partition AND q.sink = e.sink AND m.active AND NOT (q.retired AND m.whole))
LIMIT 2

-- The number of entries with this author that no source has named.
-- name: check_of_author
SELECT count(*) FROM entry e CROSS JOIN temp.seen s ON s.key = e.key
WHERE e.sink = :sink AND NOT e.removed AND e.partition = 0 AND s.author = :author

-- name: check_unexplained
SELECT e.key FROM entry e CROSS JOIN temp.seen s ON s.key = e.key LEFT JOIN partition p ON p.id = e.partition
LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE e.sink = :sink AND NOT e.removed AND NOT (p.id IS NOT NULL AND p.sink = e.sink AND l.active AND NOT (p.retired AND l.whole))
  AND (:all OR (p.retired AND l.active AND p.sink = e.sink) OR (e.partition = 0 AND :earlier AND s.author = :author))
ORDER BY e.key

-- The keys from a sorted JSON list that no source explains now.
-- name: unexplained_of_keys
SELECT e.key FROM json_each(:keys) j CROSS JOIN entry e ON e.sink = :sink AND e.key = j.value
WHERE NOT e.removed AND NOT EXISTS (
  SELECT 1 FROM partition q CROSS JOIN pipeline m ON m.id = q.pipeline
  WHERE q.id = e.partition AND q.sink = e.sink AND m.active AND NOT (q.retired AND m.whole))

-- name: sinks_all
SELECT id, workspace, addressed_by, name FROM sink

-- name: doubts
SELECT k.id, k.workspace, k.addressed_by, k.name, d.since, d.reason FROM doubt d JOIN sink k ON k.id = d.sink ORDER BY k.id

-- name: doubt_add
INSERT INTO doubt (sink, since, reason) SELECT id, :since, :reason FROM sink WHERE adopted ON CONFLICT (sink) DO NOTHING

-- Other addresses of the same sink of the service. What this state file knows of them is older than what is sent to `:sink`.
-- name: doubt_other_addresses
INSERT INTO doubt (sink, since, reason)
SELECT o.id, :since, 'The same sink of the service was written as ' || k.name || ' in ' || k.workspace || '.'
FROM sink k CROSS JOIN sink o ON o.sink_id = k.sink_id AND o.id <> k.id
WHERE k.id = :sink AND k.sink_id <> '' AND o.adopted ON CONFLICT (sink) DO NOTHING

-- name: doubt_restored
INSERT INTO doubt (sink, since, reason, changed_since, newest_segment)
SELECT id, :since, :reason, :changed_since, (SELECT coalesce(max(id), 0) FROM segment) FROM sink WHERE adopted
-- A restart with the same restored file keeps the stored time and newest segment.
ON CONFLICT (sink) DO UPDATE SET reason = excluded.reason, changed_since = coalesce(changed_since, excluded.changed_since),
  newest_segment = CASE WHEN changed_since = excluded.changed_since THEN newest_segment ELSE excluded.newest_segment END

-- name: doubt_of_sink
SELECT changed_since, newest_segment FROM doubt WHERE sink = ?

-- name: doubt_over
DELETE FROM doubt WHERE sink = ?

-- name: identity
SELECT name FROM identity

-- name: identity_add
INSERT INTO identity (id, name) VALUES (1, ?)

-- Another address of a sink of the service, if active pipelines write the sink under that address. Of two such addresses, an
-- adopted one comes first, then the older one.
-- name: sink_rival
SELECT k.workspace, k.addressed_by, k.name FROM sink m CROSS JOIN sink k ON k.sink_id = :sink_id AND k.id <> m.id
WHERE m.id = :sink AND (k.adopted, m.id) > (m.adopted AND m.sink_id = :sink_id, k.id) AND EXISTS (
  SELECT 1 FROM partition p CROSS JOIN pipeline l ON l.id = p.pipeline
  WHERE p.sink = k.id AND l.active AND NOT p.retired)
ORDER BY k.id LIMIT 1

-- name: sink_ids
SELECT sink_id FROM sink WHERE sink_id <> ''

-- name: pipeline_names
SELECT name FROM pipeline

-- name: drift_forget_added
DELETE FROM drift WHERE sink = :sink AND key > :after AND key <= :until AND what = 'added'

-- name: sink_ownership
SELECT (SELECT count(*) FROM partition p JOIN pipeline l ON l.id = p.pipeline JOIN rejected r ON r.partition = p.id
        WHERE p.sink = k.id AND l.active), coalesce(d.reason, '')
FROM sink k LEFT JOIN doubt d ON d.sink = k.id
WHERE k.workspace = ? AND k.addressed_by = ? AND k.name = ? AND k.adopted

-- Whether the mirror lacks the present content of a partition: its run is held or discarded, or it can't be read.
-- name: partition_withheld
SELECT EXISTS (SELECT 1 FROM held_run WHERE partition = :partition AND state <> 'approved')
  OR EXISTS (SELECT 1 FROM rejected INDEXED BY rejected_whole WHERE partition = :partition AND subject = 'partition')

-- name: partition_read_whole
SELECT valid_through >= 0 FROM partition WHERE id = ?

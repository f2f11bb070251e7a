-- Rejections. `chosen` is a temporary table of the write connection with the ids of the selected rejections.

-- name: rejected_add
INSERT INTO rejected (id, subject, partition, run, sink, key, value, data_type, removed, position, row_hash, field, reason,
  status, record, at, last_at, times)
VALUES (:id, :subject, :partition, :run, :sink, :key, :value, :data_type, :removed, :position, :row_hash, :field, :reason,
  :status, :record, :at, :last_at, :times)

-- Earlier rejections of the given records, by row hash.
-- name: rejected_before
SELECT id, row_hash, position, at, times FROM rejected
WHERE partition = ? AND subject = 'record' AND row_hash IN (SELECT value FROM json_each(?))

-- Earlier rejections of unreadable records, which have no row hash, by position.
-- name: rejected_unread_before
SELECT id, row_hash, position, at, times FROM rejected
WHERE partition = ? AND subject = 'record' AND row_hash IS NULL AND run < ? AND position IN (SELECT value FROM json_each(?))

-- name: rejected_rows
SELECT id, row_hash FROM rejected WHERE partition = ? AND subject = 'record' AND run < ?

-- Deletes earlier rejections of records that a partial reading has read again, or found removed.
-- name: rejected_at_positions
DELETE FROM rejected WHERE id IN (
  SELECT r.id FROM json_each(:positions) j CROSS JOIN rejected r INDEXED BY rejected_by_position
    ON r.partition = :partition AND r.position = j.value AND typeof(r.position) = 'text'
  WHERE r.subject = 'record' AND r.run < :run)

-- Deletes retried rejections of records that an incremental reading has read again. `:hashes`: the row hashes of the records.
-- name: rejected_read_again
DELETE FROM rejected WHERE id IN (
  SELECT r.id FROM rejected r INDEXED BY rejected_retried
  WHERE r.partition = :partition AND r.subject <> 'entry' AND r.run < :run AND r.retried <= :retries
    AND r.row_hash IN (SELECT value FROM json_each(:hashes)))

-- Deletes retried rejections of unreadable records, which have no row hash. A row number refers to the same record only if the
-- reading from the start, which reached the row `:last_row`, misses no earlier row.
-- name: rejected_unreadable_read_again
DELETE FROM rejected WHERE id IN (
  SELECT r.id FROM rejected r INDEXED BY rejected_retried
  WHERE r.partition = :partition AND r.subject = 'record' AND r.run < :run AND r.retried <= :retries AND r.row_hash IS NULL
    AND typeof(r.position) = 'integer' AND :last_row >= (SELECT last_row FROM partition WHERE id = :partition))

-- The retried rejections that are mapped from their stored records.
-- name: retried_stored
SELECT r.id, r.run, r.position, r.row_hash, r.reason, r.record, coalesce(n.facts, '{}'), r.subject, r.key,
  r.value, r.data_type
FROM rejected r INDEXED BY rejected_retried LEFT JOIN run n ON n.id = r.run
WHERE r.partition = ? AND r.retried <= ? AND r.subject IN ('record', 'conflict') ORDER BY r.run, r.id LIMIT ?

-- Deletes the rejections of records with these hashes, except records that the run has rejected again.
-- name: rejected_drop_mapped
DELETE FROM rejected WHERE id IN (
  SELECT r.id FROM json_each(:hashes) j CROSS JOIN rejected r ON r.partition = :partition AND r.row_hash = j.value
  WHERE r.subject = 'record' AND r.run < :run)

-- Deletes retried conflicts, except conflicts that the run has found again.
-- name: rejected_drop_resolved
DELETE FROM rejected WHERE id IN (SELECT value FROM json_each(:ids)) AND subject = 'conflict' AND run < :run

-- The entries of the given keys (a JSON list) that the partition has written.
-- name: entries_written
SELECT e.key, e.run, e.position, e.value, e.data_type FROM json_each(?) j CROSS JOIN entry e ON e.sink = ? AND e.key = j.value
WHERE e.partition = ?

-- Keeps a rejection and stores the reason, because its retry is not possible.
-- name: rejected_keep
UPDATE rejected SET retried = NULL, reason = ?, last_at = ?, times = times + 1 WHERE id = ?

-- name: rejected_drop
DELETE FROM rejected WHERE id IN (SELECT value FROM json_each(?))

-- Deletes the rejections of entries with these keys, and the partition's conflicts about these keys.
-- name: rejected_keys
DELETE FROM rejected WHERE sink = :sink AND key IN (SELECT value FROM json_each(:keys))
  AND (subject = 'entry' OR (subject = 'conflict' AND partition = :partition))

-- Deletes and returns a partition's earlier conflicts about the given keys.
-- name: rejected_conflicts_before
DELETE FROM rejected WHERE sink = ? AND subject = 'conflict' AND partition = ? AND key IN (SELECT value FROM json_each(?))
RETURNING key, id, at, times

-- name: rejected_entries_before
DELETE FROM rejected WHERE sink = ? AND subject = 'entry' AND key IN (SELECT value FROM json_each(?))

-- name: rejected_of_sink
DELETE FROM rejected WHERE sink = ? AND key IS NOT NULL AND subject = 'entry'

-- Rejections of entries and conflicts have a key; rejections of records have no key.
-- name: rejected_any_entry
SELECT 1 FROM rejected WHERE sink = ? AND key IS NOT NULL LIMIT 1

-- The given keys (a JSON list) with values that the service has all refused, so it has no entry to remove. The former values of
-- the key are complete: their limits have deleted none of them.
-- name: keys_never_stored
SELECT j.value FROM json_each(:keys) j WHERE EXISTS (
    SELECT 1 FROM rejected r WHERE r.sink = :sink AND r.key = j.value AND r.subject = 'entry' AND r.status IN (400, 413, 414, 422))
  AND NOT EXISTS (SELECT 1 FROM former f WHERE f.sink = :sink AND f.key = j.value AND f.delivery <> 'rejected')
  AND (SELECT count(*) FROM former f WHERE f.sink = :sink AND f.key = j.value) < :kept
  AND (SELECT coalesce(max(id), 0) FROM former) <= :at_most

-- The given keys (a JSON list) that the service has rejected.
-- name: rejected_entries_of_keys
SELECT key FROM rejected WHERE sink = ? AND key IN (SELECT value FROM json_each(?)) AND subject = 'entry'

-- name: rejected_partition
DELETE FROM rejected INDEXED BY rejected_whole WHERE partition = ? AND subject = 'partition' RETURNING id, at, times

-- name: partition_is_rejected
SELECT EXISTS (SELECT 1 FROM rejected INDEXED BY rejected_whole WHERE partition = ? AND subject = 'partition')

-- The rejected partitions of a pipeline. All pipelines together have few of them.
-- name: rejected_partitions
SELECT p.id, p.name FROM rejected r INDEXED BY rejected_whole CROSS JOIN partition p ON p.id = r.partition
WHERE r.subject = 'partition' AND p.pipeline = (SELECT id FROM pipeline WHERE name = ?)

-- name: rejected_any
SELECT EXISTS (SELECT 1 FROM rejected WHERE partition = ?)

-- For a run that mapped every record: it has corrected the rejections of earlier runs that it did not repeat. Retries that were
-- requested during the run are left to the next run. `:retries`: the partition's number of retries when the run began.
-- name: rejected_corrected
SELECT id FROM rejected WHERE partition = :partition AND subject IN ('record', 'conflict') AND run < :run
  AND (retried IS NULL OR retried <= :retries)

-- name: rejected_retried_corrected
SELECT id FROM rejected INDEXED BY rejected_retried
WHERE partition = :partition AND subject IN ('record', 'conflict') AND run < :run AND retried <= :retries

-- Deletes corrected rejections, except rejections that were retried after they were selected.
-- name: rejected_drop_corrected
DELETE FROM rejected WHERE id IN (SELECT value FROM json_each(:ids)) AND (retried IS NULL OR retried <= :retries)

-- name: refusal_others
DELETE FROM refusal WHERE sink = :sink AND key = :key AND (value IS NOT :value OR data_type <> :data_type)

-- name: refusal_add
INSERT INTO refusal (sink, key, value, data_type, at, operation, status, request_id, words)
VALUES (:sink, :key, :value, :data_type, :at, :operation, :status, :request_id, :words)

-- name: refusal_past
SELECT min(at), count(*) FROM refusal WHERE sink = ? AND key = ?

-- Keeps the newest 100 refusals of an entry.
-- name: refusal_prune
DELETE FROM refusal WHERE sink = :sink AND key = :key AND id <= (
  SELECT id FROM refusal WHERE sink = :sink AND key = :key ORDER BY id DESC LIMIT 1 OFFSET 100)

-- Deletes the refusals of entries that are neither rejected nor pending.
-- name: refusals_forget
DELETE FROM refusal
WHERE NOT EXISTS (SELECT 1 FROM rejected r WHERE r.sink = refusal.sink AND r.key = refusal.key AND r.subject = 'entry')
  AND NOT EXISTS (SELECT 1 FROM entry e JOIN segment s ON s.id = e.segment WHERE e.sink = refusal.sink AND e.key = refusal.key)

-- name: refusals
SELECT f.at, f.operation, f.status, f.request_id, f.words FROM rejected r JOIN refusal f ON f.sink = r.sink AND f.key = r.key
WHERE r.id = ? AND r.subject = 'entry' ORDER BY f.id

-- name: rejected_total
SELECT count(*) FROM rejected

-- name: rejected_by_pipeline
SELECT l.name, sum(c.rows)
FROM (SELECT partition, count(*) AS rows FROM rejected GROUP BY partition) c
CROSS JOIN partition p ON p.id = c.partition JOIN pipeline l ON l.id = p.pipeline
GROUP BY l.name

-- name: rejected_newest
SELECT coalesce(max(id), 0) FROM rejected

-- name: rejected_selected
SELECT r.id FROM rejected r LEFT JOIN partition p ON p.id = r.partition LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE r.id > :after
  AND (:pipeline = '' OR l.name = :pipeline)
  AND (:reason = '' OR instr(lower(r.reason), lower(:reason)) > 0)
  AND (:file = '' OR p.name = :file OR p.name GLOB :file OR p.name GLOB '*/' || :file)
  AND (:key = '' OR r.key = :key OR r.key GLOB :key)
ORDER BY r.id LIMIT :limit

-- The same selection among the given ids (a JSON list).
-- name: rejected_selected_among
SELECT r.id FROM json_each(:ids) j CROSS JOIN rejected r ON r.id = j.value
LEFT JOIN partition p ON p.id = r.partition LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE r.id > :after
  AND (:pipeline = '' OR l.name = :pipeline)
  AND (:reason = '' OR instr(lower(r.reason), lower(:reason)) > 0)
  AND (:file = '' OR p.name = :file OR p.name GLOB :file OR p.name GLOB '*/' || :file)
  AND (:key = '' OR r.key = :key OR r.key GLOB :key)
GROUP BY r.id ORDER BY r.id LIMIT :limit

-- The records of the given ids (a JSON list) as one JSON list, and the names of their pipelines. The result is one row, because
-- a thread waits for the interpreter at each row.
-- name: rejected_records
SELECT CAST('[' || coalesce(group_concat(r.record), '') || ']' AS BLOB), json_group_array(DISTINCT coalesce(l.name, ''))
FROM json_each(?) j CROSS JOIN rejected r ON r.id = j.value LEFT JOIN partition p ON p.id = r.partition
LEFT JOIN pipeline l ON l.id = p.pipeline WHERE r.record <> '{}'

-- name: rejections_read
SELECT r.id, r.subject, coalesce(l.name, ''), coalesce(p.name, ''), k.workspace, k.name, r.position, r.field,
  coalesce(r.key, ''), r.value, coalesce(r.data_type, ''), r.removed, r.reason, r.status, r.record, r.at, r.last_at, r.times,
  r.retried IS NOT NULL
FROM rejected r JOIN sink k ON k.id = r.sink LEFT JOIN partition p ON p.id = r.partition
LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE r.id IN (SELECT value FROM json_each(?)) ORDER BY r.id

-- name: rejections_newest
SELECT id FROM rejected ORDER BY id DESC LIMIT ?

-- name: chosen_begin
CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY)

-- name: chosen_clear
DELETE FROM temp.chosen

-- name: chosen_add
INSERT INTO temp.chosen (id) VALUES (?)

-- name: chosen_partitions
SELECT DISTINCT r.partition, l.name FROM temp.chosen c CROSS JOIN rejected r ON r.id = c.id JOIN partition p ON p.id = r.partition
JOIN pipeline l ON l.id = p.pipeline WHERE r.subject <> 'entry'

-- name: partition_add_retry
UPDATE partition SET retries = retries + 1 WHERE id = ? RETURNING retries

-- Marks each record with the number of the partition's next retry.
-- name: chosen_mark_retried
UPDATE rejected SET retried = (SELECT retries + 1 FROM partition WHERE partition.id = rejected.partition)
WHERE id IN (SELECT id FROM temp.chosen) AND subject <> 'entry'

-- Without a cursor the partition is read from its start, even if the source reports that it is unchanged.
-- name: partition_reopen
UPDATE partition SET cursor = NULL WHERE id = ? AND replayable

-- name: retried_hashes
SELECT row_hash FROM rejected WHERE partition = ? AND retried > ? AND row_hash IS NOT NULL

-- name: partition_retries
SELECT retries FROM partition WHERE id = ?

-- The selected rejections of entries. The last two columns: whether the mirror has the entry, and whether the entry is pending.
-- name: chosen_entries
SELECT r.id, r.sink, r.key, r.value, r.data_type, r.removed, r.partition, r.run, r.row_hash, e.key IS NOT NULL,
  s.id IS NOT NULL
FROM temp.chosen c CROSS JOIN rejected r ON r.id = c.id AND r.subject = 'entry'
LEFT JOIN entry e ON e.sink = r.sink AND e.key = r.key LEFT JOIN segment s ON s.id = e.segment
ORDER BY c.id

-- name: chosen_remember_dropped
INSERT OR REPLACE INTO dropped (sink, key, segment)
SELECT r.sink, r.key, coalesce(e.segment, 0) FROM temp.chosen c CROSS JOIN rejected r ON r.id = c.id AND r.subject = 'entry'
LEFT JOIN entry e ON e.sink = r.sink AND e.key = r.key

-- name: chosen_drop_refusals
DELETE FROM refusal WHERE id IN (
  SELECT f.id FROM temp.chosen c CROSS JOIN rejected r ON r.id = c.id AND r.subject = 'entry'
  CROSS JOIN refusal f ON f.sink = r.sink AND f.key = r.key)

-- name: chosen_drop
DELETE FROM rejected WHERE id IN (SELECT id FROM temp.chosen)

-- name: chosen_old
INSERT OR IGNORE INTO temp.chosen (id) SELECT id FROM rejected WHERE last_at < ? LIMIT ?

-- name: chosen_oldest
INSERT OR IGNORE INTO temp.chosen (id) SELECT id FROM rejected ORDER BY last_at, id LIMIT ?

-- name: bounded_add
INSERT INTO bounded (id, forgotten, at) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET forgotten = forgotten + excluded.forgotten, at = excluded.at

-- name: bounded
SELECT forgotten, at FROM bounded

-- The rejections in a partition, in the order of its records, without the rejection of the partition itself.
-- name: rejected_ids
SELECT id FROM rejected WHERE partition = ? AND subject <> 'partition' ORDER BY position, id

-- name: rejected_count
SELECT count(*), coalesce(sum(subject <> 'record'), 0) FROM rejected WHERE partition = ? AND subject <> 'partition'

-- name: rejected_details
SELECT r.id, r.at, r.subject, r.position, r.reason, r.field, r.key, r.status, r.record, n.facts
FROM json_each(?) j CROSS JOIN rejected r ON r.id = j.value LEFT JOIN run n ON n.id = r.run ORDER BY j.key

-- name: rejected_times
SELECT r.id, r.at FROM json_each(?) j CROSS JOIN rejected r ON r.id = j.value
CROSS JOIN partition p ON p.id = r.partition CROSS JOIN pipeline l ON l.id = p.pipeline WHERE l.name = ?

-- Runs that the guard held or that were rolled back.

-- name: held_add
INSERT INTO held_run (run, partition, state, since, reasons, digest, content, cursor, deletes, whole, partial, remapped, mapped,
  retries, changes, created, updated, removed, rolled_back)
VALUES (:run, :partition, 'held', :since, :reasons, (SELECT digest FROM partition WHERE id = :partition), :content, :cursor,
  :deletes, :whole, :partial, :remapped, :mapped, :retries,
  (SELECT l.changes FROM partition p JOIN pipeline l ON l.id = p.pipeline WHERE p.id = :partition), :created, :updated, :removed,
  :rolled_back)

-- The held run of a partition; whether it was read with the present mapping, and whether the pipeline's entries are unchanged.
-- name: held_of_partition
SELECT h.run, h.state, h.since, h.content, h.cursor, h.retries, h.digest = p.digest, h.changes = l.changes, h.rolled_back
FROM held_run h JOIN partition p ON p.id = h.partition JOIN pipeline l ON l.id = p.pipeline WHERE h.partition = ?

-- name: held_drop
DELETE FROM held_run WHERE partition = ? RETURNING run, state

-- name: held_set_state
UPDATE held_run SET state = ? WHERE run = ?

-- name: held_move
UPDATE held_run SET cursor = :cursor, retries = :retries WHERE run = :run

-- name: held_snapshot_clear
DELETE FROM held_snapshot WHERE run = ?

-- name: held_snapshot_add
INSERT INTO held_snapshot (run, piece, hashes) VALUES (?, ?, ?)

-- name: held_snapshot_get
SELECT hashes FROM held_snapshot WHERE run = ? ORDER BY piece

-- name: held_read
SELECT h.run, l.name, p.name, h.since, h.reasons, h.state, r.records, h.created, h.updated, h.removed
FROM held_run h JOIN partition p ON p.id = h.partition JOIN pipeline l ON l.id = p.pipeline JOIN run r ON r.id = h.run
WHERE h.run = ?

-- name: held_list
SELECT h.run, l.name, p.name, h.since, h.reasons, h.state, r.records, h.created, h.updated, h.removed
FROM held_run h JOIN partition p ON p.id = h.partition JOIN pipeline l ON l.id = p.pipeline JOIN run r ON r.id = h.run
WHERE h.state <> 'discarded' ORDER BY h.run

-- A page of the entries that a held run would create or change.
-- name: held_differences
SELECT t.key, e.value, e.data_type, t.value, t.data_type
FROM staging t CROSS JOIN held_run h ON h.run = t.run CROSS JOIN partition p ON p.id = h.partition
LEFT JOIN entry e ON e.sink = p.sink AND e.key = t.key AND NOT e.removed
WHERE t.run = :run AND t.key > :after AND (e.key IS NULL OR e.value IS NOT t.value OR e.data_type <> t.data_type)
ORDER BY t.key LIMIT :limit

-- The values that are needed to write a held run.
-- name: held_context
SELECT h.partition, l.name, p.sink, h.cursor, h.deletes, h.whole, h.partial, h.remapped, h.mapped, h.retries,
  h.changes = l.changes AND NOT h.rolled_back, h.digest = p.digest
FROM held_run h JOIN partition p ON p.id = h.partition JOIN pipeline l ON l.id = p.pipeline WHERE h.run = ?

-- The approval of a run that was rolled back counts the entries again that it writes.
-- name: held_recount
UPDATE run SET created = 0, updated = 0, removed = 0
WHERE id = (SELECT run FROM held_run WHERE run = ? AND state = 'held' AND rolled_back)

-- The held run that replaced a run of the same partition.
-- name: held_after
SELECT h.run FROM run r JOIN held_run h ON h.partition = r.partition WHERE r.id = ?

-- Entries of a partition that a run did not stage.
-- name: entries_unstaged
SELECT e.key, e.row_hash FROM entry e WHERE e.sink = :sink AND e.partition = :partition AND NOT e.removed
  AND NOT EXISTS (SELECT 1 FROM staging s WHERE s.run = :run AND s.key = e.key)
  AND NOT EXISTS (SELECT 1 FROM also_named c WHERE c.sink = e.sink AND c.key = e.key)
  AND e.row_hash >> :shift & :mask = :range

-- The values of a partition before a run, also of entries that no source had named and that the run names.
-- name: entries_before
SELECT e.value FROM entry e WHERE e.sink = :sink AND NOT e.removed AND (e.partition = :partition
  OR (e.partition = 0 AND EXISTS (SELECT 1 FROM staging s WHERE s.run = :run AND s.key = e.key)))

-- First readings for a sink that already has entries; see first_readings.py.

-- name: first_reading_guard
UPDATE partition SET first_guard = :guard WHERE id = :partition AND first_guard IS NOT :guard

-- name: found_write
INSERT INTO staging (run, key, value, data_type, row_hash)
SELECT ?, value ->> 'key', value ->> 'value', value ->> 'data_type', 0 FROM json_each(?) WHERE true
ON CONFLICT (run, key) DO UPDATE SET value = excluded.value, data_type = excluded.data_type

-- name: staging_any
SELECT EXISTS (SELECT 1 FROM staging WHERE run = ?)

-- name: found_clear
DELETE FROM staging
WHERE run = :found AND key IN (SELECT key FROM staging WHERE run = :found ORDER BY key LIMIT :count)

-- The entries that partitions name and the service has, each with both values.
-- name: first_compared
SELECT e.partition, e.key, e.value, e.data_type, f.value, f.data_type
FROM staging f CROSS JOIN entry e ON e.sink = :sink AND e.key = f.key
WHERE f.run = :found AND e.partition <> 0 AND NOT e.removed ORDER BY f.key

-- name: first_readings
SELECT p.id, p.first_guard, (SELECT coalesce(sum(s.live), 0) FROM segment s WHERE s.partition = p.id AND s.kind <> 'delete'),
  l.name, coalesce(p.last_run, 0), p.cursor, p.deletes, p.repeats, p.retries
FROM partition p JOIN pipeline l ON l.id = p.pipeline
WHERE p.sink = :sink AND p.first_guard IS NOT NULL

-- A page of the entries that sources name.
-- name: first_entries
SELECT partition, key, value, data_type, row_hash, position, segment FROM entry
WHERE sink = ? AND key > ? AND partition <> 0 AND NOT removed ORDER BY key LIMIT ?

-- name: first_stage
INSERT INTO staging (run, key, value, data_type, row_hash, position) VALUES (?, ?, ?, ?, ?, ?)

-- name: first_withdraw
DELETE FROM entry WHERE sink = ? AND key = ?

-- Deletes values that were stored as overwritten: after a withdrawal, the adoption overwrites no value of the service.
-- name: first_forget_former
DELETE FROM former WHERE sink = :sink AND key IN (SELECT value FROM json_each(:keys)) AND ending = 'overwritten'

-- name: first_forget_names
DELETE FROM also_named WHERE sink = :sink AND key IN (SELECT value FROM json_each(:keys)) RETURNING partition

-- name: also_named_end
DELETE FROM also_named WHERE partition = ? AND sink = ?

-- name: first_reading_withdrawn
UPDATE partition SET cursor = NULL, valid_through = -1, repeats = 0, awaiting = 0, positions_exact = 0 WHERE id = ?

-- name: run_withdrawn
UPDATE run SET created = 0, updated = 0 WHERE id = ?

-- name: first_restore
INSERT INTO entry (sink, key, value, data_type, segment, removed, partition, run, row_hash)
SELECT :sink, f.key, f.value, f.data_type, 0, 0, 0, 0, 0 FROM staging f
WHERE f.run = :found AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.sink = :sink AND e.key = f.key)

-- name: sink_found
UPDATE sink SET found = :found WHERE id = :sink

-- Runs that the guard held or that were rolled back.

-- name: held_add
INSERT INTO held_run (run, partition, state, since, reasons, digest, content, cursor, deletes, whole, partial, remapped, mapped,
  retries, changes, created, updated, removed, rolled_back)
VALUES (:run, :partition, 'held', :since, :reasons, (SELECT digest FROM partition WHERE id = :partition), :content, :cursor,
  :deletes, :whole, :partial, :remapped, :mapped, :retries,
  (SELECT l.changes FROM partition p JOIN pipeline l ON l.id = p.pipeline WHERE p.id = :partition), :created, :updated, :removed,
  :rolled_back)

-- The held run of a partition; whether it was read with the present mapping, and whether the pipeline's entries are as then.
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

-- What is needed to apply a held run.
-- name: held_context
SELECT h.partition, l.name, p.sink, h.cursor, h.deletes, h.whole, h.partial, h.remapped, h.mapped, h.retries,
  h.changes = l.changes AND NOT h.rolled_back, h.digest = p.digest
FROM held_run h JOIN partition p ON p.id = h.partition JOIN pipeline l ON l.id = p.pipeline WHERE h.run = ?

-- The held run that replaced a run of the same partition.
-- name: held_after
SELECT h.run FROM run r JOIN held_run h ON h.partition = r.partition WHERE r.id = ?

-- Entries of a partition that a run did not stage.
-- name: entries_unstaged
SELECT e.key, e.row_hash FROM entry e WHERE e.sink = :sink AND e.partition = :partition AND NOT e.removed
  AND NOT EXISTS (SELECT 1 FROM staging s WHERE s.run = :run AND s.key = e.key)
  AND NOT EXISTS (SELECT 1 FROM also_named c WHERE c.sink = e.sink AND c.key = e.key)

-- name: entries_count
SELECT count(*) FROM entry WHERE sink = ? AND partition = ? AND NOT removed

-- Rollbacks, see runs/rollback.py. `:runs` is the JSON list of the runs that are rolled back. The run of an entry or a former value
-- is the run that gave the value. The chain of a key has its former values, except values that were only found in the service,
-- and values that a rollback undid.

-- The runs of a selection that changed entries. A reading of a snapshot that has not ended, and a held run, have delivered nothing
-- that can be rolled back. Exception: the runs of an interrupted rollback are held, but some of their values remain.
-- name: rollback_runs
SELECT r.id, l.name, p.name, r.started, p.id, p.snapshot, p.gone IS NOT NULL, h.run, h.state
FROM run r JOIN partition p ON p.id = r.partition JOIN pipeline l ON l.id = p.pipeline
LEFT JOIN held_run h ON h.partition = p.id AND h.state <> 'approved'
WHERE r.id >= coalesce(:run, 0) AND (:run IS NULL OR r.id = :run) AND (:since IS NULL OR r.started >= :since)
  AND (:pipeline = '' OR l.name = :pipeline) AND (r.created OR r.updated OR r.removed)
  AND (:sinks IS NULL OR p.sink IN (SELECT value FROM json_each(:sinks)))
  AND NOT (p.snapshot AND r.ended IS NULL) AND (r.id NOT IN (SELECT run FROM held_run WHERE state <> 'approved')
    OR r.id IN (SELECT value FROM json_each((SELECT runs FROM rollback))))
ORDER BY r.id

-- name: rollback_run
SELECT r.ended, coalesce(h.state, '') FROM run r LEFT JOIN held_run h ON h.run = r.id WHERE r.id = ?

-- name: rollback_sinks
SELECT id, name FROM sink WHERE :name = '' OR name = :name OR sink_id = :name ORDER BY id

-- The keys of a sink with a value that one of the runs gave or ended, in pages.
-- name: rollback_keys
SELECT key FROM entry WHERE sink = :sink AND key > :after
  AND coalesce(value_run, run) IN (SELECT value FROM json_each(:runs))
UNION
SELECT key FROM former WHERE sink = :sink AND key > :after AND NOT undone
  AND (ended_by IN (SELECT value FROM json_each(:runs)) OR coalesce(value_run, run) IN (SELECT value FROM json_each(:runs)))
ORDER BY key LIMIT :limit

-- For each of the given keys (a JSON list): the present entry (e), the newest value of the chain (n), and the newest value of
-- the chain that none of the runs gave (f). `place`: the number of former values newer than f. `kept`: the number of all
-- former values. `drift`: whether the last check found another value in the service.
-- name: rollback_details
SELECT j.value AS key, e.value, e.data_type, e.partition, coalesce(e.value_run, e.run) AS run, e.removed,
  n.ended_by, coalesce(n.value_run, n.run) AS ended_run,
  f.id AS before, f.value, f.data_type, f.partition, coalesce(f.value_run, f.run), f.position, f.ended_by, f.ending,
  (SELECT count(*) FROM former x WHERE x.sink = :sink AND x.key = j.value AND x.id > f.id) AS place,
  (SELECT count(*) FROM former x WHERE x.sink = :sink AND x.key = j.value) AS kept,
  EXISTS (SELECT 1 FROM drift d WHERE d.sink = :sink AND d.key = j.value AND d.reaction = ''
    AND (d.what = 'added' OR (d.segment = e.segment AND NOT e.removed))) AS drift
FROM json_each(:keys) j LEFT JOIN entry e ON e.sink = :sink AND e.key = j.value
LEFT JOIN former n ON n.id = (
  SELECT max(x.id) FROM former x
  WHERE x.sink = :sink AND x.key = j.value AND NOT x.undone AND (x.run <> 0 OR x.ended_by <> 0))
LEFT JOIN former f ON f.id = (
  SELECT max(x.id) FROM former x
  WHERE x.sink = :sink AND x.key = j.value AND NOT x.undone AND (x.run <> 0 OR x.ended_by <> 0)
    AND coalesce(x.value_run, x.run) NOT IN (SELECT value FROM json_each(:runs)))
ORDER BY key

-- The highest id of a former value, and the time at which the oldest former value ended.
-- name: rollback_horizon
SELECT coalesce(max(id), 0), (SELECT ended_at FROM former ORDER BY id LIMIT 1) FROM former

-- Marks former values that no longer precede the present value. `:keys`: a JSON list of pairs: a key, and the first id to mark.
-- name: rollback_undo
UPDATE former SET undone = 1 WHERE id IN (
  SELECT f.id FROM json_each(:keys) j CROSS JOIN former f
    ON f.sink = :sink AND f.key = j.value ->> 0 AND f.id >= j.value ->> 1)

-- name: rollback_begin
INSERT INTO rollback (id, runs, sinks, is_complete) VALUES (1, ?, ?, ?)

-- name: rollback_open
SELECT runs, sinks, is_complete FROM rollback

-- name: rollback_end
DELETE FROM rollback

-- name: rollback_names
DELETE FROM also_named WHERE run IN (SELECT value FROM json_each(?))

-- Stages delivered values of partitions with a held run, before they are rolled back. A value that is staged already is newer.
-- name: rollback_stage
INSERT OR IGNORE INTO staging (run, key, value, data_type, row_hash, position)
SELECT h.run, e.key, e.value, e.data_type, e.row_hash, e.position
FROM json_each(:keys) j CROSS JOIN entry e ON e.sink = :sink AND e.key = j.value
CROSS JOIN held_run h ON h.partition = e.partition AND h.rolled_back AND h.state = 'held'
WHERE NOT e.removed

-- name: rollback_hold
INSERT INTO held_run (run, partition, state, since, reasons, digest, content, cursor, deletes, whole, partial, remapped, mapped,
  retries, changes, created, updated, removed, rolled_back)
SELECT :run, id, :state, :since, :reasons, digest, :content, coalesce(cursor, 'null'), deletes, 0, :content = '', 0, 0, retries, 0,
  0, 0, 0, 1
FROM partition WHERE id = :partition

-- Entries of these partitions (a JSON list) now have other values, so differences to the last reading are not valid. The
-- connector is not notified of a held partition, so a held file is not archived.
-- name: rollback_partitions
UPDATE partition SET valid_through = min(valid_through, -1), positions_exact = 0, awaiting = awaiting AND NOT EXISTS (
  SELECT 1 FROM held_run h WHERE h.partition = partition.id AND h.rolled_back AND h.state = 'held')
WHERE id IN (SELECT value FROM json_each(?))

-- name: rollback_pipelines
UPDATE pipeline SET changes = changes + 1
WHERE id IN (SELECT p.pipeline FROM partition p WHERE p.id IN (SELECT value FROM json_each(?)))

-- Whether the stored row hashes of a partition show the content of its last reading.
-- name: rollback_is_known
SELECT valid_through >= 0 OR (valid_through = -1 AND EXISTS (SELECT 1 FROM snapshot s WHERE s.partition = p.id))
FROM partition p WHERE p.id = ?

-- After a rollback, a discarded run stays discarded, even if the guard would now permit it.
-- name: rollback_discarded
UPDATE held_run SET rolled_back = 1 WHERE partition = ? AND state = 'discarded'

-- name: rollback_count
UPDATE held_run SET created = created + :created, updated = updated + :updated, removed = removed + :removed
WHERE partition = :partition AND rolled_back AND state = 'held'

-- Deletes the holds of partitions in which no entry was rolled back.
-- name: rollback_unhold
DELETE FROM held_run WHERE rolled_back AND state = 'held' AND created + updated + removed = 0
  AND run IN (SELECT value FROM json_each(?)) RETURNING run

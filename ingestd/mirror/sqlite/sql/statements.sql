-- Partitions, runs, entries, segments and lanes. The other .sql files contain the statements of rejections, drift checks and
-- other parts. `:sink`, `:partition` and `:run` are ids.

-- name: sink_ensure
INSERT INTO sink (workspace, addressed_by, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: sink_id
SELECT id FROM sink WHERE workspace = ? AND addressed_by = ? AND name = ?

-- name: pipeline_ensure
INSERT INTO pipeline (name) VALUES (?) ON CONFLICT DO NOTHING

-- name: pipeline_get
SELECT id, changes FROM pipeline WHERE name = ?

-- name: pipeline_activate
UPDATE pipeline SET active = (name IN (SELECT value FROM json_each(?)))
WHERE active <> (name IN (SELECT value FROM json_each(?)))

-- name: pipeline_changed
UPDATE pipeline SET changes = changes + 1 WHERE id = (SELECT pipeline FROM partition WHERE id = ?) RETURNING changes

-- name: partition_ensure
INSERT INTO partition (pipeline, sink, name, digest, seen_at, snapshot, deletes, small, replayable)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: partition_get
SELECT id, sink, digest, cursor, valid_through, repeats, awaiting, retries, gone, retired, snapshot, deletes, small, replayable
FROM partition WHERE pipeline = ? AND name = ?

-- name: partition_set_kind
UPDATE partition SET snapshot = ?, deletes = ?, small = ?, replayable = ? WHERE id = ?

-- name: partition_cursor
SELECT p.cursor FROM pipeline l JOIN partition p ON p.pipeline = l.id JOIN sink k ON k.id = p.sink
WHERE l.name = ? AND p.name = ? AND p.digest = ? AND k.workspace = ? AND k.addressed_by = ? AND k.name = ?

-- name: partition_retries
SELECT retries FROM partition WHERE id = ?

-- `remapped` 1: the next whole reading has to find the entries of this sink that only the former mapping produced.
-- name: partition_restart
UPDATE partition SET remapped = (sink = :sink AND digest <> '' AND (remapped OR digest <> :digest)), sink = :sink,
  digest = :digest, cursor = CASE WHEN replayable THEN NULL ELSE cursor END, valid_through = -1, repeats = 0, positions_exact = 0
WHERE id = :partition

-- name: partition_advance
UPDATE partition SET cursor = :cursor, last_row = max(last_row, :last_row) WHERE id = :partition

-- name: partition_context
SELECT l.name, p.sink, p.repeats, p.remapped, p.last_run IS NOT NULL, p.positions_exact, k.found, k.adopted_at IS NULL,
  EXISTS (SELECT 1 FROM held_run h WHERE h.partition = p.id AND h.rolled_back AND h.state <> 'approved')
FROM partition p JOIN pipeline l ON l.id = p.pipeline JOIN sink k ON k.id = p.sink WHERE p.id = ?

-- If a reading changed nothing and ended at the same cursor as the last reading, the connector is not notified. Exception: a
-- source that can't be read again, because its clients or its broker may wait for the notification.
-- name: partition_end
UPDATE partition SET awaiting = awaiting OR :changed OR cursor IS NOT :cursor OR NOT replayable, cursor = :cursor, last_run = :run
WHERE id = :partition

-- If the partition's last run failed, `:run`, which writes no entries, becomes the last run. So the failure has ended.
-- name: partition_read_again
UPDATE partition SET last_run = :run
WHERE id = :partition AND EXISTS (SELECT 1 FROM run r WHERE r.id = partition.last_run AND r.failure <> '')

-- name: partition_snapshot
UPDATE partition SET repeats = :repeats, positions_exact = :exact,
  valid_through = CASE WHEN :valid THEN (SELECT l.changes FROM pipeline l WHERE l.id = partition.pipeline) ELSE -1 END
WHERE id = :partition

-- name: partition_amended
UPDATE partition SET valid_through = min(valid_through, ?) WHERE id = ?

-- `positions_exact` 0: another record now produces an entry, and it is not known whether the former record still produces it.
-- name: partition_positions
UPDATE partition SET positions_exact = ? WHERE id = ? AND positions_exact <> ?

-- name: partition_doubted
UPDATE partition SET cursor = NULL, valid_through = -2, repeats = 1 WHERE id = ?

-- name: partitions_of
SELECT p.id FROM pipeline l JOIN partition p ON p.pipeline = l.id WHERE l.name IN (SELECT value FROM json_each(?))

-- name: partition_failed
UPDATE partition SET last_run = ? WHERE id = ?

-- name: partition_acknowledge
UPDATE partition SET awaiting = 0, acknowledged_at = :at WHERE id = :partition AND cursor = :cursor

-- `touched` is a temporary table of the write connection. Triggers add partitions that may have become acknowledged: a
-- partition was read to its end, or a segment that it waits for was acknowledged.
-- name: touched_create
CREATE TEMP TABLE touched (pipeline INTEGER NOT NULL, partition INTEGER NOT NULL, PRIMARY KEY (pipeline, partition)) WITHOUT ROWID

-- name: touched_by_segment
CREATE TEMP TRIGGER touched_by_segment AFTER DELETE ON main.segment BEGIN
  INSERT OR IGNORE INTO touched (pipeline, partition) SELECT pipeline, id FROM partition WHERE id = OLD.partition;
  INSERT OR IGNORE INTO touched (pipeline, partition)
    SELECT p.pipeline, p.id FROM wait w CROSS JOIN partition p ON p.id = w.partition WHERE w.segment = OLD.id;
END

-- name: touched_by_run
CREATE TEMP TRIGGER touched_by_run AFTER UPDATE OF awaiting, cursor ON main.partition WHEN NEW.awaiting BEGIN
  INSERT OR IGNORE INTO touched (pipeline, partition) VALUES (NEW.pipeline, NEW.id);
END

-- name: touched_at_start
INSERT INTO temp.touched (pipeline, partition) SELECT pipeline, id FROM partition WHERE awaiting

-- Removes a partition that is not acknowledged yet. A trigger adds it again when its state changes.
-- name: touched_drop
DELETE FROM temp.touched WHERE pipeline = ? AND partition = ?

-- name: partitions_touched
SELECT p.id, p.name, p.snapshot, p.deletes, p.small, p.replayable, p.cursor, p.last_run, p.awaiting AND p.cursor IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM segment s WHERE s.partition = p.id)
  AND NOT EXISTS (SELECT 1 FROM wait w CROSS JOIN segment s ON s.id = w.segment WHERE w.partition = p.id)
FROM temp.touched t CROSS JOIN partition p ON p.id = t.partition
WHERE t.pipeline = ? AND t.partition > ? ORDER BY t.partition LIMIT ?

-- For a copy of the state file, which has no table `touched`.
-- name: partitions_acknowledgeable
SELECT p.id, p.cursor FROM partition p
WHERE p.awaiting AND p.cursor IS NOT NULL AND NOT EXISTS (SELECT 1 FROM segment s WHERE s.partition = p.id)
  AND NOT EXISTS (SELECT 1 FROM wait w CROSS JOIN segment s ON s.id = w.segment WHERE w.partition = p.id)

-- name: wait_add
INSERT INTO wait (partition, segment) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: wait_clear
DELETE FROM wait WHERE partition = ?

-- name: snapshot_get
SELECT hashes FROM snapshot WHERE partition = ? ORDER BY piece

-- name: snapshot_pieces
SELECT piece FROM snapshot WHERE partition = ?

-- name: snapshot_piece
SELECT hashes FROM snapshot WHERE partition = ? AND piece = ?

-- name: snapshot_piece_set
UPDATE snapshot SET hashes = ? WHERE partition = ? AND piece = ?

-- name: snapshot_without_sections
UPDATE snapshot SET sections = NULL WHERE partition = ? AND sections IS NOT NULL

-- name: snapshot_clear
DELETE FROM snapshot WHERE partition = ?

-- name: snapshot_add
INSERT INTO snapshot (partition, piece, hashes, sections) VALUES (?, ?, ?, ?)

-- name: snapshot_sections
SELECT sections FROM snapshot WHERE partition = ? AND piece = 0

-- Keeps the snapshots of a pipeline's most recently read partitions (OFFSET), and deletes the next snapshots (LIMIT). Earlier
-- calls have deleted the older snapshots. If a partition without a snapshot is read again, all its records are mapped.
-- name: snapshots_drop_old
DELETE FROM snapshot WHERE partition IN (
  SELECT id FROM partition WHERE pipeline = (SELECT pipeline FROM partition WHERE id = ?)
  ORDER BY last_run DESC LIMIT ? OFFSET ?
) RETURNING partition

-- name: partition_without_snapshot
UPDATE partition SET valid_through = -1 WHERE id = ?

-- name: runs_interrupted
UPDATE run INDEXED BY run_open SET ended = started, failure = 'ingestd ended while it was read' WHERE ended IS NULL

-- name: run_begin
INSERT INTO run (partition, started) VALUES (?, ?) RETURNING id

-- name: run_count
UPDATE run SET records = records + :records, created = created + :created, updated = updated + :updated,
  unchanged = unchanged + :unchanged, removed = removed + :removed, rejected = rejected + :rejected,
  valueless = valueless + :valueless,
  facts = coalesce(:facts, facts)
WHERE id = :run

-- name: run_add_notice
UPDATE run SET facts = json_set(facts, :path, trim(coalesce(json_extract(facts, :path), '') || ' ' || :sentence)) WHERE id = :run

-- name: run_end
UPDATE run SET ended = ?, failure = ? WHERE id = ?
RETURNING id, records, created, updated, unchanged, removed, rejected, valueless, coalesce(json_extract(facts, '$."file.notice"'), '')

-- Deletes older runs without any effect. A run with unchanged entries remains, because entries may refer to it. A held run,
-- which has no effect yet, remains, too.
-- name: run_forget_idle
DELETE FROM run INDEXED BY run_idle WHERE partition = ? AND id < ?
  AND created = 0 AND updated = 0 AND unchanged = 0 AND removed = 0 AND rejected = 0 AND valueless = 0
  AND id NOT IN (SELECT run FROM held_run)

-- name: keys_in_range
SELECT 1 FROM entry WHERE sink = ? AND key BETWEEN ? AND ? LIMIT 1

-- The entries of the given keys (a JSON list). `kind`: the kind of the segment of a pending entry; NULL: it is not pending.
-- name: entries_of_keys
SELECT e.key, e.value, e.data_type, e.segment, e.removed, e.partition, e.run, e.row_hash, CAST(e.position AS TEXT), s.kind,
  e.last_read
FROM json_each(?) j CROSS JOIN entry e ON e.sink = ? AND e.key = j.value LEFT JOIN segment s ON s.id = e.segment

-- name: partition_owners
SELECT p.id, l.name, l.active, p.name FROM partition p JOIN pipeline l ON l.id = p.pipeline
WHERE p.id IN (SELECT value FROM json_each(?))

-- The partitions of ?2 (a JSON list) that belong to the same pipeline as the partition ?1, and that the source still has.
-- name: partitions_present
SELECT id, name FROM partition WHERE id IN (SELECT value FROM json_each(?2)) AND gone IS NULL
  AND +pipeline = (SELECT pipeline FROM partition WHERE id = ?1)

-- name: entry_location
SELECT value, data_type, position FROM entry WHERE sink = ? AND key = ?

-- The partition and the position of each of the given keys (a JSON list).
-- name: entry_locations
SELECT e.key, e.partition, e.position FROM json_each(?) j CROSS JOIN entry e ON e.sink = ? AND e.key = j.value

-- The partition, the run and the row (0: none) of the given keys (a JSON list). A child's position is text: row 3, at parts[2].
-- name: entries_source
SELECT e.key, e.partition, e.run, CASE
  WHEN typeof(e.position) = 'integer' THEN e.position
  WHEN e.position LIKE 'row %, at %' THEN CAST(substr(e.position, 5) AS INTEGER)
  ELSE 0
END FROM json_each(?) j CROSS JOIN entry e ON e.sink = ? AND e.key = j.value

-- `queued_at`: the present time as seconds since the epoch; unixepoch('subsec') needs SQLite 3.42.
-- name: segment_add
INSERT INTO segment (sink, partition, kind, items, live, bytes, over, body, run, row_steps, queued_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (julianday('now') - 2440587.5) * 86400.0) RETURNING id

-- name: segments_over
SELECT id, over FROM segment WHERE id IN (SELECT value FROM json_each(?))

-- name: segment_lose
UPDATE segment SET live = live - ? WHERE id = ? RETURNING live

-- name: segment_drop
DELETE FROM segment WHERE id = ?

-- name: segment_get
SELECT sink, items, live, body, row_steps FROM segment WHERE id = ?

-- name: segment_shrink
UPDATE segment SET items = live, bytes = ?, body = ?, row_steps = ? WHERE id = ?

-- name: segment_live_keys
SELECT key FROM entry WHERE sink = ? AND segment = ? AND key IN (SELECT value FROM json_each(?))

-- This and the next statement write one row. `write_rows` repeats the row, because a call takes as long as one more row.
-- name: entries_insert
INSERT INTO entry (sink, segment, removed, partition, run, key, value, data_type, row_hash, position)
VALUES (?1, ?2, ?3, ?4, ?5, ?, ?, ?, ?, ?)

-- name: entries_write
INSERT INTO entry (sink, segment, removed, partition, run, key, value, data_type, row_hash, position)
VALUES (?1, ?2, ?3, ?4, ?5, ?, ?, ?, ?, ?)
ON CONFLICT (sink, key) DO UPDATE SET value = excluded.value, data_type = excluded.data_type, segment = excluded.segment,
  removed = excluded.removed, partition = excluded.partition, run = excluded.run, row_hash = excluded.row_hash,
  position = excluded.position, last_read = NULL, value_run = NULL

-- A record with a value within the dead-band: the entry keeps the value that was sent.
-- name: entries_set_read
UPDATE entry SET last_read = ? WHERE sink = ? AND key = ?

-- Another record now produces an equal entry. A row number stays, because it belongs to the run that wrote the entry.
-- name: entries_set_record
UPDATE entry SET row_hash = ?, position = CASE WHEN typeof(position) = 'text' THEN ? ELSE position END WHERE sink = ? AND key = ?

-- A source names an equal entry that no other source explains: the entry now belongs to the partition of this source.
-- name: entries_set_owner
UPDATE entry SET row_hash = ?, position = ?, partition = ?, value_run = coalesce(value_run, run), run = ?
WHERE sink = ? AND key = ?

-- name: entries_point
UPDATE entry SET segment = ? WHERE sink = ? AND key IN (SELECT value FROM json_each(?))

-- name: entries_of_partition
SELECT key, row_hash FROM entry WHERE sink = :sink AND key > :after AND partition = :partition AND NOT removed
  AND row_hash >> :shift & :mask = :range
ORDER BY key LIMIT :limit

-- name: entries_at_positions
SELECT e.key FROM json_each(:positions) j CROSS JOIN entry e INDEXED BY entry_by_position
  ON e.partition = :partition AND e.position = j.value AND typeof(e.position) = 'text'
WHERE e.sink = :sink AND NOT e.removed

-- A row without a value comes from a rejected record, so it replaces no other row.
-- name: staging_write
INSERT INTO staging (run, key, value, data_type, row_hash, position, deadband)
SELECT ?, value ->> 'key', value ->> 'value', value ->> 'data_type', value ->> 'row_hash', value ->> 'position',
  value ->> 'deadband'
FROM json_each(?) WHERE true
ON CONFLICT (run, key) DO UPDATE SET value = excluded.value, data_type = excluded.data_type, row_hash = excluded.row_hash,
  position = excluded.position, deadband = excluded.deadband
WHERE excluded.value IS NOT NULL

-- name: staging_read
SELECT key, value, data_type, row_hash, position, deadband FROM staging WHERE run = ? AND key > ? ORDER BY key LIMIT ?

-- name: staging_of_keys
SELECT s.key, s.value, s.data_type, s.position FROM json_each(?) j CROSS JOIN staging s ON s.run = ? AND s.key = j.value
WHERE s.value IS NOT NULL

-- name: staging_clear
DELETE FROM staging WHERE run = ?

-- name: staging_clear_all
DELETE FROM staging WHERE run NOT IN (SELECT run FROM held_run)

-- name: staging_clear_partition
DELETE FROM staging WHERE run IN (SELECT id FROM run INDEXED BY run_open WHERE partition = ? AND ended IS NULL)

-- name: lanes
SELECT id, workspace, addressed_by, name, workspace_id, sink_id, adopted, pending FROM lane ORDER BY id

-- name: lane
SELECT id, workspace, addressed_by, name, workspace_id, sink_id, adopted, pending FROM lane WHERE id = ?

-- name: sink_remember
UPDATE sink SET workspace_id = ?, sink_id = ?, adopted = ? WHERE id = ?

-- name: sink_remembered
SELECT sink_id FROM sink WHERE id = ?

-- name: sink_forget_segments
DELETE FROM segment WHERE sink = ?

-- name: sink_forget_removed
DELETE FROM entry WHERE sink = ? AND removed

-- name: sink_forget_adopted
DELETE FROM entry WHERE sink = ? AND partition = 0

-- name: sink_page
SELECT key, value, data_type FROM entry WHERE sink = ? AND key > ? ORDER BY key LIMIT ?

-- name: segments_pending
SELECT s.id, s.live, s.bytes, s.over FROM segment s WHERE s.sink = ? AND s.id > ? AND (
  NOT EXISTS (SELECT 1 FROM pipeline WHERE paused_at IS NOT NULL)
  OR coalesce((SELECT p.pipeline FROM partition p WHERE p.id = s.partition), 0)
    NOT IN (SELECT id FROM pipeline WHERE paused_at IS NOT NULL)
) ORDER BY s.id LIMIT 64

-- name: segment_body
SELECT s.kind, s.items, s.live, s.body, s.row_steps, coalesce(l.name, ''), coalesce(p.name, ''),
  coalesce(json_extract(r.facts, '$."file.name"'), ''), s.run
FROM segment s LEFT JOIN run r ON r.id = s.run LEFT JOIN partition p ON p.id = r.partition
LEFT JOIN pipeline l ON l.id = p.pipeline WHERE s.id = ?

-- Acknowledges the given keys of some segments and returns the former segment of each key. RETURNING returns new values, so the
-- former id is stored with a negative sign. A negative id refers to no segment.
-- name: entries_acknowledge
UPDATE entry SET segment = -segment WHERE sink = ? AND key IN (SELECT value FROM json_each(?))
  AND segment IN (SELECT value FROM json_each(?)) RETURNING -segment

-- name: entries_origin
SELECT key, value, data_type, partition, run, row_hash, position, removed FROM entry
WHERE sink = ? AND key IN (SELECT value FROM json_each(?)) AND segment IN (SELECT value FROM json_each(?))

-- name: entries_delete_acknowledged
DELETE FROM entry WHERE sink = ? AND removed AND segment <= 0 AND key IN (SELECT value FROM json_each(?))

-- name: entries_delete_removed
DELETE FROM entry WHERE sink = ? AND segment = ? AND removed AND key IN (SELECT value FROM json_each(?))

-- name: attempt_add
INSERT INTO attempt (sink, at, operation, items, status, milliseconds, outcome, sentence) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: attempt_prune
DELETE FROM attempt WHERE id <= (SELECT max(id) FROM attempt) - 10000

-- name: status_sinks
SELECT k.workspace, k.addressed_by, k.name, k.sink_id,
  (SELECT count(*) FROM entry e WHERE e.sink = k.id AND NOT e.removed),
  k.pending, coalesce(r.rows, 0),
  d.tried_at, d.at, d.entries, d.added, d.changed, d.removed, d.failure, d.unexplained,
  a.operation, a.items, a.status, a.milliseconds, a.outcome, a.sentence
FROM sink k LEFT JOIN (SELECT sink, count(*) AS rows FROM rejected GROUP BY sink) r ON r.sink = k.id
LEFT JOIN drift_check d ON d.sink = k.id LEFT JOIN attempt a ON a.id = (SELECT max(id) FROM attempt b WHERE b.sink = k.id)
ORDER BY k.workspace, k.name

-- The number of entries of a sink, up to a limit.
-- name: entries_of_sink
SELECT count(*) FROM (
  SELECT 1 FROM sink k CROSS JOIN entry e ON e.sink = k.id
  WHERE k.workspace = ? AND k.addressed_by = ? AND k.name = ? AND NOT e.removed LIMIT ?)

-- name: status_pipelines
SELECT l.name, count(p.id), coalesce(sum((SELECT count(*) FROM rejected r WHERE r.partition = p.id)), 0),
  coalesce(sum((SELECT count(*) FROM entry e WHERE e.partition = p.id AND e.last_read IS NOT NULL)), 0), max(p.last_run)
FROM pipeline l LEFT JOIN partition p ON p.pipeline = l.id WHERE l.active GROUP BY l.id ORDER BY l.name

-- The last run of each pipeline that ever ran, and whether the partition of a failed run is rejected.
-- name: pipeline_last_runs
SELECT l.name, r.started, r.failure, r.failure <> '' AND EXISTS (
  SELECT 1 FROM rejected x INDEXED BY rejected_whole WHERE x.partition = r.partition AND x.subject = 'partition')
FROM pipeline l CROSS JOIN run r ON r.id = (SELECT max(p.last_run) FROM partition p WHERE p.pipeline = l.id)
WHERE l.active

-- name: status_run
SELECT id, started, records, created, updated, unchanged, removed, rejected, valueless, failure,
  EXISTS (SELECT 1 FROM rejected x INDEXED BY rejected_whole WHERE x.partition = r.partition AND x.subject = 'partition'),
  is_repeat
FROM run r WHERE id = ?

-- The last run that read records, among the runs of the partition to which the given run belongs.
-- name: status_reading
SELECT id, started, records, created, updated, unchanged, removed, rejected, valueless FROM run
WHERE partition = (SELECT partition FROM run WHERE id = ?) AND records > 0 AND failure = '' AND ended IS NOT NULL
ORDER BY id DESC LIMIT 1

-- The notices of the last runs of the partitions that the source has, the newest first, and of the pipeline's last run.
-- name: status_notices
SELECT pipeline, name, started, notice, count FROM (
  SELECT l.name AS pipeline, p.name, r.started, json_extract(r.facts, '$."file.notice"') AS notice,
    count(*) OVER (PARTITION BY l.id) AS count, row_number() OVER (PARTITION BY l.id ORDER BY r.id DESC) AS place
  FROM run r INDEXED BY run_noticed CROSS JOIN partition p ON p.id = r.partition AND p.last_run = r.id
  JOIN pipeline l ON l.id = p.pipeline AND l.active
  WHERE json_extract(r.facts, '$."file.notice"') IS NOT NULL
    AND (p.gone IS NULL OR r.id = (SELECT max(q.last_run) FROM partition q WHERE q.pipeline = p.pipeline))
) WHERE place <= :limit ORDER BY pipeline, place

-- name: backlog
SELECT k.workspace, k.addressed_by, k.name, k.pending,
  (SELECT s.queued_at FROM segment s WHERE s.sink = k.id ORDER BY s.id LIMIT 1)
FROM sink k ORDER BY k.workspace, k.name

-- name: pending_total
SELECT coalesce(sum(pending), 0) FROM sink

-- name: origins
SELECT k.workspace, k.name, e.key, e.value, e.data_type, e.removed, s.id IS NOT NULL, e.position, coalesce(l.name, ''),
  coalesce(p.name, ''), r.started, r.facts, e.run,
  EXISTS (SELECT 1 FROM rejected x WHERE x.sink = e.sink AND x.key = e.key AND x.subject = 'entry'), e.row_hash,
  coalesce(p.digest, ''), d.at, coalesce(d.operation, ''), d.status, e.last_read
FROM sink k CROSS JOIN entry e ON e.sink = k.id AND e.key = ? LEFT JOIN segment s ON s.id = e.segment
LEFT JOIN delivered d ON d.segment = abs(e.segment) AND s.id IS NULL AND e.run <> 0
LEFT JOIN partition p ON p.id = e.partition LEFT JOIN pipeline l ON l.id = p.pipeline LEFT JOIN run r ON r.id = e.run
ORDER BY k.workspace, k.name

-- The last reading of a partition.
-- name: partition_last_run
SELECT r.id, r.started, coalesce(r.ended, r.started), l.name, k.workspace, k.addressed_by, k.name, p.digest, r.records,
  r.created, r.updated, r.unchanged, r.removed, r.valueless, r.facts
FROM partition p JOIN pipeline l ON l.id = p.pipeline JOIN sink k ON k.id = p.sink JOIN run r ON r.id = p.last_run
WHERE p.id = ?

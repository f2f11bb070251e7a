-- Deletion of unreferenced partitions and runs. `kept_run` and `kept_partition` are temporary tables of the read connection;
-- they contain the referenced ids.

-- name: pruning_due
SELECT next_run, (SELECT coalesce(max(id), 0) FROM run) FROM pruning

-- name: pruning_done
UPDATE pruning SET next_run = ?

-- The last run of the newest partition that is old enough to be checked.
-- name: partitions_beyond
SELECT last_run FROM partition WHERE pipeline = (SELECT id FROM pipeline WHERE name = ?)
ORDER BY last_run DESC LIMIT 1 OFFSET ?

-- name: partitions_before
SELECT id, name, last_run FROM partition WHERE pipeline = (SELECT id FROM pipeline WHERE name = ?) AND last_run < ?
ORDER BY last_run DESC LIMIT ?

-- name: partition_gone
UPDATE partition SET gone = ? WHERE id = ? AND gone IS NULL

-- name: partition_is_back
UPDATE partition SET gone = NULL WHERE id = ?

-- name: kept_run_create
CREATE TEMP TABLE kept_run (id INTEGER PRIMARY KEY)

-- name: kept_partition_create
CREATE TEMP TABLE kept_partition (id INTEGER PRIMARY KEY)

-- name: kept_segment_create
CREATE TEMP TABLE kept_segment (id INTEGER PRIMARY KEY)

-- The runs that gave a value which a later run named again.
-- name: kept_by_values
INSERT OR IGNORE INTO temp.kept_run (id)
SELECT value_run FROM entry WHERE value_run IS NOT NULL UNION ALL SELECT value_run FROM former WHERE value_run IS NOT NULL

-- The partitions of the runs that the previous statement has added. They may differ from the partitions of the entries.
-- name: kept_partitions_of_values
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT r.partition FROM temp.kept_run k CROSS JOIN run r ON r.id = k.id

-- name: kept_by_entries
INSERT OR IGNORE INTO temp.kept_run (id) SELECT run FROM entry

-- name: kept_by_names
INSERT OR IGNORE INTO temp.kept_run (id) SELECT run FROM also_named

-- name: kept_partitions_of_entries
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT partition FROM entry

-- name: kept_segments_of_entries
INSERT OR IGNORE INTO temp.kept_segment (id) SELECT abs(segment) FROM entry

-- name: kept_by_former
INSERT OR IGNORE INTO temp.kept_run (id) SELECT run FROM former UNION ALL SELECT ended_by FROM former

-- name: kept_partitions_of_former
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT partition FROM former

-- name: kept_by_rejected
INSERT OR IGNORE INTO temp.kept_run (id) SELECT run FROM rejected

-- name: kept_partitions_of_rejected
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT partition FROM rejected

-- name: kept_by_held
INSERT OR IGNORE INTO temp.kept_run (id) SELECT run FROM held_run

-- name: kept_partitions_of_held
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT partition FROM held_run WHERE state <> 'discarded'

-- name: kept_partitions_of_segments
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT partition FROM segment

-- name: kept_partitions_of_drift
INSERT OR IGNORE INTO temp.kept_partition (id) SELECT partition FROM drift

-- The newest partitions of each pipeline.
-- name: kept_newest_partitions
INSERT OR IGNORE INTO temp.kept_partition (id)
SELECT id FROM (
  SELECT id, row_number() OVER (PARTITION BY pipeline ORDER BY last_run DESC) AS age FROM partition
) WHERE age <= ?

-- name: partitions_to_prune
SELECT id FROM partition WHERE gone <= ? AND NOT awaiting AND id NOT IN (SELECT id FROM temp.kept_partition)

-- Runs without a reference from an entry or a rejection, except the last run and the last run with content of each partition.
-- name: runs_to_prune
SELECT r.id FROM run r WHERE r.id <= ? AND r.ended IS NOT NULL AND r.id NOT IN (SELECT id FROM temp.kept_run)
  AND r.id IS NOT (SELECT last_run FROM partition p WHERE p.id = r.partition)
  AND (r.facts = '{}' OR r.failure <> '' OR EXISTS (
    SELECT 1 FROM run n WHERE n.partition = r.partition AND n.id > r.id AND n.facts <> '{}' AND n.failure = ''))

-- Deliveries of segments to which no entry refers. Entries also refer to a segment that is still pending in part.
-- name: delivered_to_prune
SELECT d.segment FROM delivered d WHERE d.segment NOT IN (SELECT id FROM temp.kept_segment)

-- name: delivered_prune
DELETE FROM delivered WHERE segment IN (SELECT value FROM json_each(?))

-- name: runs_prune
DELETE FROM run WHERE id IN (SELECT value FROM json_each(?))

-- Returns a row if a partition can still be pruned: it is gone, and was not read since it was selected.
-- name: partition_still_prunable
SELECT 1 FROM partition p WHERE p.id = :partition AND p.gone IS NOT NULL AND NOT p.awaiting
  AND coalesce(p.last_run, 0) <= :newest
  AND NOT EXISTS (SELECT 1 FROM segment s WHERE s.partition = p.id)
  AND NOT EXISTS (SELECT 1 FROM rejected r WHERE r.partition = p.id)
  AND NOT EXISTS (SELECT 1 FROM held_run h WHERE h.partition = p.id AND h.state <> 'discarded')

-- name: partition_runs_prune
DELETE FROM run WHERE id IN (SELECT id FROM run WHERE partition = ? ORDER BY id LIMIT ?)

-- Deletes the names by a partition that is gone. Names are needed as long as the partition has rejections.
-- name: also_named_prune
DELETE FROM also_named WHERE partition = ?

-- name: partition_prune
DELETE FROM partition WHERE id = ?

-- name: runs_left
SELECT count(*) FROM run

-- The history of entries. Only changes with numbers above the sink's history_after belong to its present history.

-- name: start
-- Changes of an earlier history do not count, because the changes between the two histories are unknown.
UPDATE data_sink SET history_from = :now, history_after = coalesce((SELECT max(number) FROM entry_change), 0)
WHERE number = :sink

-- name: stop
UPDATE data_sink SET history_from = NULL WHERE number = :sink

-- name: configure
UPDATE data_sink
SET history_changes = :changes, history_days = :days, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :sink

-- name: last_changes
-- The time of the last change of each key in the JSON list :keys; 0: the key has no change.
SELECT numbers.value, coalesce((SELECT at FROM entry_change WHERE sink = :sink AND key = numbers.value ORDER BY at DESC LIMIT 1), 0)
FROM json_each(:keys) AS numbers

-- name: insert
INSERT INTO entry_change (sink, key, at, old_value, old_data_type, actor, key_id, client_id, request_id, operation,
                          old_origin) VALUES

-- name: changes_of_key
-- The changes from (:at, :number) on, the newest first. The value after a change is the old value in the preceding row.
SELECT number, at, old_value, old_data_type, known_from, actor, key_id, client_id, request_id, operation, old_origin
FROM entry_change
WHERE sink = :sink AND key = :key AND number > :after AND (at, number) <= (:at, :number)
ORDER BY at DESC, number DESC LIMIT :take

-- name: differences
-- Examine at most :walk changes after (:at, :number), up to :until. Return the first change of a key after :since if the values
-- at :since and :until differ or are unknown. The value at an instant is the old value of the next change or the present value.
SELECT c.at, c.number, c.key, c.old_value, c.old_data_type, c.known_from,
       CASE WHEN g.number IS NULL THEN e.value ELSE g.old_value END,
       CASE WHEN g.number IS NULL THEN e.data_type ELSE g.old_data_type END, g.known_from
FROM (SELECT at, number, key, old_value, old_data_type, known_from
      FROM entry_change
      WHERE sink = :sink AND at <= :until AND (at, number) > (:at, :number)
      ORDER BY at, number LIMIT :walk) AS c
LEFT JOIN entry_change g ON g.number = (SELECT n.number FROM entry_change n
                                        WHERE n.sink = :sink AND n.key = c.key AND n.at > :until AND n.number > :after
                                        ORDER BY n.at, n.number LIMIT 1)
LEFT JOIN data_sink_entry e ON e.sink = :sink AND e.key = c.key
WHERE c.number = (SELECT f.number FROM entry_change f
                  WHERE f.sink = :sink AND f.key = c.key AND f.at > :since AND f.number > :after
                  ORDER BY f.at, f.number LIMIT 1)
  AND (c.known_from > :since OR g.known_from > :until
       OR c.old_value IS NOT CASE WHEN g.number IS NULL THEN e.value ELSE g.old_value END
       OR c.old_data_type IS NOT CASE WHEN g.number IS NULL THEN e.data_type ELSE g.old_data_type END)
ORDER BY c.at, c.number LIMIT :take

-- name: differences_end
-- The position of change :walk + 1 after (:at, :number); no row if there are fewer changes.
SELECT at, number FROM entry_change
WHERE sink = :sink AND at <= :until AND (at, number) > (:at, :number)
ORDER BY at, number LIMIT 1 OFFSET :walk

-- name: unknown_keys
-- Keys with unknown values: the oldest kept change is after :until, and the last dropped change (known_from) is after :since.
SELECT key FROM entry_change
WHERE sink = :sink AND known_from > :since AND at > :until AND number > :after ORDER BY known_from LIMIT :most

-- name: next_sink
-- The next sink that has changes, with its settings; NULLs if the sink is gone.
SELECT walked.sink, s.history_changes, s.history_days, s.history_from, s.history_after
FROM (SELECT sink FROM entry_change WHERE sink > :after ORDER BY sink LIMIT 1) AS walked
LEFT JOIN data_sink s ON s.number = walked.sink

-- name: forget_before
UPDATE data_sink SET history_from = :before WHERE number = :sink AND history_from < :before

-- name: drop_before
DELETE FROM entry_change
WHERE number IN (SELECT number FROM entry_change WHERE sink = :sink AND at < :before ORDER BY at LIMIT :most)

-- name: drop_stale
-- Drop changes of an earlier history, which are the oldest changes of the sink.
DELETE FROM entry_change
WHERE number IN (SELECT number FROM entry_change WHERE sink = :sink AND at <= :begun AND number <= :after
                 ORDER BY at LIMIT :most)

-- name: last_change
SELECT coalesce((SELECT max(number) FROM entry_change), 0), changes_pruned_to FROM data_sink_entry_numbers WHERE one = 1

-- name: queue_for_pruning
-- Lock the pruning. No row: another process holds the lock.
SELECT 1

-- name: changed_sinks
-- The sinks of the next :most changes; for each sink, the number of the last of these changes.
SELECT c.sink, s.history_changes, max(c.number)
FROM (SELECT number, sink FROM entry_change WHERE number > :pruned_to ORDER BY number LIMIT :most) AS c
LEFT JOIN data_sink s ON s.number = c.sink GROUP BY c.sink, s.history_changes

-- name: drop_excess
-- Drop up to :most changes of keys that changed after :pruned_to and up to :to. The :kept newest changes of each key stay.
DELETE FROM entry_change
WHERE number IN (
    SELECT o.number
    FROM (SELECT DISTINCT key FROM (SELECT key, sink FROM entry_change WHERE number > :pruned_to AND number <= :to) AS w
          WHERE w.sink = :sink) AS k
    CROSS JOIN entry_change o
    WHERE o.sink = :sink AND o.key = k.key
      AND (o.at, o.number) <= (SELECT n.at, n.number FROM entry_change n
                               WHERE n.sink = :sink AND n.key = k.key AND n.number <= :to
                               ORDER BY n.at DESC, n.number DESC LIMIT 1 OFFSET :kept)
    ORDER BY o.number LIMIT :most)
RETURNING key, at

-- name: cut
-- Mark the oldest kept change of a key: its old value was set by the last dropped change, at :known_from.
UPDATE entry_change SET known_from = :known_from
WHERE number = (SELECT number FROM entry_change WHERE sink = :sink AND key = :key ORDER BY at, number LIMIT 1)

-- name: note_pruning
UPDATE data_sink_entry_numbers SET changes_pruned_to = :to WHERE one = 1

-- name: remove_changes
DELETE FROM entry_change
WHERE number IN (SELECT number FROM entry_change WHERE sink = :sink ORDER BY at LIMIT :most)

-- PostgreSQL's variants of the statements of the history.

-- name: queue_for_pruning
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('pruning of entry changes', 0))

-- name: last_changes
-- The columns in ORDER BY select the index by key and time. With ORDER BY at alone, a plan that was made while the table was
-- empty reads the index by time.
SELECT keys.value, coalesce((SELECT at FROM entry_change
                             WHERE sink = :sink AND key >= keys.value AND key <= keys.value
                             ORDER BY key DESC, at DESC LIMIT 1), 0)
FROM json_array_elements_text(:keys::json) AS keys

-- name: differences
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
       OR c.old_value IS DISTINCT FROM CASE WHEN g.number IS NULL THEN e.value ELSE g.old_value END
       OR c.old_data_type IS DISTINCT FROM CASE WHEN g.number IS NULL THEN e.data_type ELSE g.old_data_type END)
ORDER BY c.at, c.number LIMIT :take

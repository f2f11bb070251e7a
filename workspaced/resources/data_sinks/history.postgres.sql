-- PostgreSQL's variants of the statements of the history.

-- name: insert_staged
INSERT INTO entry_change (sink, key, at, old_value, old_data_type, actor, key_id, client_id, request_id, operation,
                          old_origin)
SELECT :sink, s.key,
       greatest(:now, coalesce(e.updated_at, (SELECT c.at FROM entry_change c WHERE c.sink = :sink AND c.key = s.key
                                              ORDER BY c.at DESC LIMIT 1), 0)),
       e.value, e.data_type, :actor, :key_id, :client_id, :request_id, :operation, e.origin
FROM staged_change s
LEFT JOIN LATERAL (SELECT number, value, data_type, observed_at, updated_at, origin FROM data_sink_entry
                   WHERE sink = :sink AND key = s.key LIMIT 1) AS e ON true
WHERE CASE WHEN e.number IS NULL THEN s.remove = 0
           WHEN s.observed_at < e.observed_at THEN false
           ELSE s.remove = 1 OR s.value IS DISTINCT FROM e.value
                OR (s.data_type IS NOT NULL AND s.data_type <> e.data_type) END
ORDER BY s.ordinal

-- name: queue_for_pruning
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('pruning of entry changes', 0))

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

-- The cursors of partitions, for `ingestd cursor`. If `:names` is empty: of all partitions that the source still has.

-- name: cursors_of
SELECT p.name, p.cursor, r.started,
  (SELECT coalesce(sum(s.live), 0) FROM segment s WHERE s.partition = p.id),
  (SELECT count(*) FROM rejected x WHERE x.partition = p.id)
FROM partition p JOIN pipeline l ON l.id = p.pipeline LEFT JOIN run r ON r.id = p.last_run
WHERE l.name = :pipeline AND CASE WHEN :names = '[]' THEN p.gone IS NULL
  ELSE p.name IN (SELECT value FROM json_each(:names)) END
ORDER BY p.name

-- name: cursor_set
UPDATE partition SET cursor = :cursor
WHERE name = :partition AND pipeline = (SELECT id FROM pipeline WHERE name = :pipeline)

-- After this change, the content of the held run no longer counts as known, so the partition is read.
-- name: cursor_of_held_forget
UPDATE held_run SET retries = -1
WHERE partition = (SELECT id FROM partition WHERE name = :partition AND pipeline = (SELECT id FROM pipeline WHERE name = :pipeline))

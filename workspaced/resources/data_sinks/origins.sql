-- Origins of values. Lists of numbers, of digests and of origins are JSON.

-- name: find
SELECT digest, number FROM entry_origin
WHERE sink = :sink AND digest IN (SELECT value FROM json_each(:digests) AS numbers) AND kept_at > :since

-- name: keep
INSERT INTO entry_origin (sink, digest, source, file, run, pipeline, link, kept_at)
SELECT :sink, value ->> 'digest', value ->> 'source', value ->> 'file', value ->> 'run', value ->> 'pipeline', value ->> 'link', :now
FROM json_each(:origins) AS numbers WHERE true
ON CONFLICT (sink, digest) DO UPDATE SET kept_at = excluded.kept_at
RETURNING digest, number

-- name: list
SELECT number, source, file, run, pipeline, link FROM entry_origin
WHERE number IN (SELECT value FROM json_each(:numbers) AS numbers)

-- name: unchecked
-- Origins that were neither written nor found in use since :before, the oldest first.
SELECT number FROM entry_origin WHERE kept_at < :before ORDER BY kept_at LIMIT :most

-- name: walk_entries
-- The origins of the next :walk entries. For each origin: the number of its last entry, and the count of its entries.
SELECT abs(origin) >> 32, max(number), count(*)
FROM (SELECT number, origin FROM data_sink_entry WHERE number > :after ORDER BY number LIMIT :walk) AS walked
GROUP BY abs(origin) >> 32

-- name: walk_changes
SELECT abs(origin) >> 32, max(number), count(*)
FROM (SELECT number, old_origin AS origin FROM entry_change WHERE number > :after ORDER BY number LIMIT :walk) AS walked
GROUP BY abs(origin) >> 32

-- name: confirm
UPDATE entry_origin SET kept_at = :now WHERE number IN (SELECT value FROM json_each(:numbers) AS numbers) AND kept_at < :now

-- name: drop
DELETE FROM entry_origin WHERE number IN (SELECT value FROM json_each(:numbers) AS numbers) AND kept_at < :before

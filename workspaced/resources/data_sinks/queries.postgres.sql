-- PostgreSQL's variants of the statements of sinks and entries. A transaction that writes locks the sink's row, which every write
-- changes anyway. Writers of one sink therefore wait for each other there only, and can't deadlock.

-- hold: find_sink_by_id
FOR NO KEY UPDATE OF s

-- hold: find_sink_by_serial
FOR NO KEY UPDATE OF s

-- name: find_entry_number_by_id
SELECT e.number, e.sink, e.key, s.removed_to IS NOT NULL
FROM data_sink_entry e JOIN data_sink s ON s.number = e.sink WHERE e.id = :id AND e.id_supplied = 1
UNION ALL
SELECT e.number, e.sink, e.key, s.removed_to IS NOT NULL
FROM data_sink_entry e JOIN data_sink s ON s.number = e.sink
WHERE e.number = :number AND e.id = :id AND e.id_supplied = 0

-- name: queue_for_removal
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('removal of sinks', 0))

-- name: take_numbers
SELECT take_numbers('entry_number', :count), scramble FROM data_sink_entry_numbers WHERE one = 1

-- name: upsert_entry
-- An existing entry gets no number, because the row proposed for insertion is not inserted.
INSERT INTO data_sink_entry AS e (number, sink, key, value, data_type, id, id_supplied, observed_at, version,
                                  created_at, updated_at, created_by, updated_by, origin)
VALUES (coalesce(:number::bigint, 0), :sink, :key, :value, coalesce(:data_type::text, :default_data_type),
        coalesce(:id::text, left(gen_random_uuid()::text, 24)
                            || lpad(to_hex((:number::bigint * :multiplier + :id_offset) & 281474976710655), 12, '0'), ''),
        (:id::text IS NOT NULL)::integer, :observed_at, 1, :now, :now, :actor, :actor, :origin::bigint)
ON CONFLICT (sink, key) DO UPDATE
SET value = excluded.value, data_type = coalesce(:data_type::text, e.data_type),
    observed_at = coalesce(excluded.observed_at, e.observed_at), version = e.version + 1,
    updated_at = greatest(e.updated_at, excluded.updated_at), updated_by = excluded.updated_by, origin = excluded.origin
WHERE excluded.observed_at IS NULL OR e.observed_at IS NULL OR excluded.observed_at >= e.observed_at
RETURNING number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by, origin

-- name: make_stage
CREATE TEMP TABLE IF NOT EXISTS staged_change (
    ordinal bigint GENERATED ALWAYS AS IDENTITY, key text COLLATE "C" NOT NULL, value text COLLATE "C",
    data_type text COLLATE "C", id text COLLATE "C", observed_at bigint, remove smallint NOT NULL DEFAULT 0, origin bigint)

-- name: clear_stage
-- TRUNCATE leaves no dead rows, and restarts the ordinals.
TRUNCATE staged_change RESTART IDENTITY

-- name: compare_stage
-- LATERAL and LIMIT have the planner look up each staged key, even if it has no statistics of the tables.
SELECT count(*) FILTER (WHERE stale),
       count(*) FILTER (WHERE NOT stale AND NOT remove),
       count(*) FILTER (WHERE NOT stale AND NOT remove AND same),
       count(*) FILTER (WHERE NOT stale AND remove),
       count(*) FILTER (WHERE stale AND NOT remove)
FROM (SELECT s.remove = 1 AS remove,
             coalesce(s.observed_at < e.observed_at, false) AS stale,
             s.value IS NOT DISTINCT FROM e.value AND (s.data_type IS NULL OR s.data_type = e.data_type) AS same
      FROM staged_change s
      CROSS JOIN LATERAL (SELECT observed_at, value, data_type FROM data_sink_entry
                          WHERE sink = :sink AND key = s.key LIMIT 1) AS e) AS met

-- name: upsert_stage
INSERT INTO data_sink_entry AS e (number, sink, key, value, data_type, id, id_supplied, observed_at, version,
                                  created_at, updated_at, created_by, updated_by, origin)
SELECT :before + s.ordinal, :sink, s.key, s.value,
       coalesce(s.data_type, :default_data_type),
       coalesce(s.id, left(gen_random_uuid()::text, 24)
                      || lpad(to_hex(((:before + s.ordinal) * :multiplier + :id_offset) & 281474976710655), 12, '0')),
       (s.id IS NOT NULL)::integer, s.observed_at, 1, :now, :now, :actor, :actor, s.origin + :origin::bigint
FROM staged_change s WHERE s.remove = 0 ORDER BY s.ordinal
ON CONFLICT (sink, key) DO UPDATE
SET value = excluded.value, data_type = excluded.data_type,
    observed_at = coalesce(excluded.observed_at, e.observed_at), version = e.version + 1,
    updated_at = greatest(e.updated_at, excluded.updated_at), updated_by = excluded.updated_by, origin = excluded.origin
WHERE excluded.observed_at IS NULL OR e.observed_at IS NULL OR excluded.observed_at >= e.observed_at

-- name: delete_stage
DELETE FROM data_sink_entry
WHERE number = ANY (ARRAY(
    SELECT e.number
    FROM staged_change s
    CROSS JOIN LATERAL (SELECT number, observed_at FROM data_sink_entry WHERE sink = :sink AND key = s.key LIMIT 1) AS e
    WHERE s.remove = 1 AND NOT coalesce(s.observed_at < e.observed_at, false)))

-- name: entries_of_stage
SELECT e.number, e.id, e.key, e.value, e.data_type, e.observed_at, e.version, e.created_at, e.updated_at,
       e.created_by, e.updated_by, e.origin
FROM staged_change s
CROSS JOIN LATERAL (SELECT * FROM data_sink_entry WHERE sink = :sink AND key = s.key LIMIT 1) AS e

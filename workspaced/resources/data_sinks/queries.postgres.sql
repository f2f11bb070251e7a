-- PostgreSQL's variants of the statements of sinks and entries. A writing transaction first locks the sink's row, which every
-- write changes anyway. So writers of one sink wait only for this lock, and can't deadlock.

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
-- For an existing entry, :number is NULL. Its replacement 0 is not stored, because the proposed row is not inserted.
INSERT INTO data_sink_entry AS e (number, sink, key, value, data_type, id, id_supplied, observed_at, version,
                                  created_at, updated_at, created_by, updated_by, origin)
VALUES (coalesce(:number::bigint, 0), :sink, :key, :value, coalesce(:data_type::text, :default_data_type),
        coalesce(:id::text, left(gen_random_uuid()::text, 24)
                            || lpad(to_hex((:number::bigint * :multiplier + :id_offset) & 281474976710655), 12, '0'), ''),
        (:id::text IS NOT NULL)::integer, :observed_at, 1, :now, :now, :actor, :actor, :origin::bigint)
ON CONFLICT (sink, key) DO UPDATE
SET value = excluded.value, data_type = coalesce(:data_type::text, e.data_type),
    observed_at = coalesce(excluded.observed_at, e.observed_at), version = e.version + 1,
    updated_at = greatest(e.updated_at, excluded.updated_at), updated_by = excluded.updated_by,
    origin = coalesce(excluded.origin, -abs(e.origin))
WHERE excluded.observed_at IS NULL OR e.observed_at IS NULL OR excluded.observed_at >= e.observed_at
RETURNING {entry_columns}

-- name: staged
-- Each statement gets the staged items as JSON, because a temporary table takes ten times as long to clear as to fill.
(SELECT ordinal, item ->> 0 AS key, item ->> 1 AS value, item ->> 2 AS data_type, item ->> 3 AS id,
        (item ->> 4)::bigint AS observed_at, (item ->> 5)::boolean AS remove, (item ->> 6)::bigint AS origin
 FROM jsonb_array_elements(:staged) WITH ORDINALITY AS items (item, ordinal)) AS s

-- name: make_stage

-- name: clear_stage

-- name: stage

-- name: stage_plain

-- name: stage_with_origin

-- name: keep_data_types

-- name: compare_stage
-- This statement also writes the items, so that each item is parsed and looked up only once. The statements that write items on
-- SQLite are empty here.
{staged_upsert}
SELECT count(*) FILTER (WHERE stale),
       count(*) FILTER (WHERE updates),
       count(*) FILTER (WHERE updates AND same),
       count(*) FILTER (WHERE NOT stale AND remove AND present IS NOT NULL),
       count(*) FILTER (WHERE stale AND NOT remove)
FROM item

-- name: record_stage
-- For ORDER BY c.key, see last_changes in history.postgres.sql.
INSERT INTO entry_change (sink, key, at, old_value, old_data_type, actor, key_id, client_id, request_id, operation,
                          old_origin)
SELECT :sink, s.key,
       greatest(:now, e.updated_at,
                (SELECT c.at FROM entry_change c
                 WHERE c.sink = :sink AND c.key >= s.key AND c.key <= s.key
                 ORDER BY c.key DESC, c.at DESC LIMIT 1)),
       e.value, e.data_type, :actor, :key_id, :client_id, :request_id, :operation, e.origin
FROM {staged}
LEFT JOIN LATERAL (SELECT number, value, data_type, observed_at, updated_at, origin FROM data_sink_entry
                   WHERE sink = :sink AND key = s.key LIMIT 1) AS e ON true
WHERE CASE WHEN e.number IS NULL THEN NOT s.remove
           WHEN s.observed_at < e.observed_at THEN false
           ELSE s.remove OR s.value IS DISTINCT FROM e.value
                OR (s.data_type IS NOT NULL AND s.data_type <> e.data_type) END
ORDER BY s.ordinal

-- name: count_numbers

-- name: upsert_stage

-- name: upsert_stage_returning
{staged_upsert}
SELECT * FROM created UNION ALL SELECT * FROM updated

-- name: staged_upsert
-- The sink's row is locked, so no other transaction adds an absent key. A plain INSERT and UPDATE take four fifths of the time
-- of INSERT with ON CONFLICT. With LATERAL and LIMIT, the planner looks up each staged key, even without table statistics.
WITH item AS MATERIALIZED (
    SELECT s.*, e.number AS present,
           coalesce(s.observed_at < e.observed_at, false) AS stale,
           e.number IS NOT NULL AND NOT s.remove AND NOT coalesce(s.observed_at < e.observed_at, false) AS updates,
           s.value IS NOT DISTINCT FROM e.value AND (s.data_type IS NULL OR s.data_type = e.data_type) AS same
    FROM {staged}
    LEFT JOIN LATERAL (SELECT number, value, data_type, observed_at FROM data_sink_entry
                       WHERE sink = :sink AND key = s.key LIMIT 1) AS e ON true
), deleted AS (
    DELETE FROM data_sink_entry
    WHERE number = ANY (ARRAY(SELECT present FROM item WHERE remove AND NOT stale AND present IS NOT NULL))
), updated AS (
    UPDATE data_sink_entry e
    SET value = s.value, data_type = coalesce(s.data_type, e.data_type),
        observed_at = coalesce(s.observed_at, e.observed_at), version = e.version + 1,
        updated_at = greatest(e.updated_at, :now), updated_by = :actor,
        origin = coalesce(s.origin + :origin::bigint, -abs(e.origin))
    FROM item s WHERE s.updates AND e.number = s.present
    RETURNING {qualified_columns}
), created AS (
    INSERT INTO data_sink_entry AS e (number, sink, key, value, data_type, id, id_supplied, observed_at, version,
                                      created_at, updated_at, created_by, updated_by, origin)
    SELECT s.number, :sink, s.key, s.value, coalesce(s.data_type, :default_data_type),
           coalesce(s.id, left(gen_random_uuid()::text, 24)
                          || lpad(to_hex((s.number * :multiplier + (SELECT scramble FROM data_sink_entry_numbers WHERE one = 1))
                                         & 281474976710655), 12, '0')),
           (s.id IS NOT NULL)::integer, s.observed_at, 1, :now, :now, :actor, :actor, s.origin + :origin::bigint
    FROM (SELECT nextval('entry_number') AS number, item.* FROM item WHERE present IS NULL AND NOT remove ORDER BY ordinal) AS s
    RETURNING {qualified_columns}
)

-- name: delete_stage

-- name: entries_of_stage
SELECT {qualified_columns}
FROM {staged}
CROSS JOIN LATERAL (SELECT * FROM data_sink_entry WHERE sink = :sink AND key = s.key LIMIT 1) AS e

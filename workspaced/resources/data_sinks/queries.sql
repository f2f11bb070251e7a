-- Data sinks and entries. The columns of every SELECT are in the order of values.StoredSink and values.StoredEntry.

-- name: sink_columns
s.number, s.id, w.id, s.serial, s.label, s.description, s.tags, s.icon, s.entry_count, s.version,
       s.created_at, s.updated_at, s.created_by, s.updated_by,
       s.history_changes, s.history_days, s.history_from, s.history_after, s.protect_fed_entries

-- name: entry_columns
number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by, origin

-- name: qualified_columns
e.number, e.id, e.key, e.value, e.data_type, e.observed_at, e.version, e.created_at, e.updated_at, e.created_by, e.updated_by,
       e.origin

-- name: find_sink_by_id
SELECT {sink_columns}
FROM data_sink s JOIN workspace w ON w.number = s.workspace
WHERE s.id = :id AND s.removed_to IS NULL AND w.id = :workspace_id AND w.deleted_at IS NULL

-- name: find_sink_by_serial
SELECT {sink_columns}
FROM workspace w JOIN data_sink s ON s.workspace = w.number AND s.serial = :serial
WHERE w.id = :workspace_id AND w.deleted_at IS NULL AND s.removed_to IS NULL

-- name: list_sinks
SELECT {sink_columns}
FROM workspace w JOIN data_sink s ON s.workspace = w.number
WHERE w.id = :workspace_id AND w.deleted_at IS NULL AND s.removed_to IS NULL ORDER BY s.serial

-- name: workspace_is_there
SELECT 1 FROM workspace WHERE id = :workspace_id AND deleted_at IS NULL

-- name: take_serial
-- The transaction that creates the sink takes the serial from the workspace's row. So a rollback leaves no gap, and no serial
-- is used again.
UPDATE workspace SET last_sink_serial = last_sink_serial + 1, sink_count = sink_count + 1
WHERE id = :workspace_id AND deleted_at IS NULL RETURNING number, last_sink_serial, sink_count

-- name: sink_id_in_use
SELECT 1 FROM data_sink WHERE id = :id

-- name: insert_sink
INSERT INTO data_sink (id, workspace, serial, label, description, tags, icon, protect_fed_entries, version,
                       created_at, updated_at, created_by, updated_by)
VALUES (:id, :workspace, :serial, :label, :description, :tags, :icon, :protect_fed_entries, 1, :now, :now, :actor, :actor)

-- name: update_sink
UPDATE data_sink
SET label = :label, description = :description, tags = :tags, icon = :icon, protect_fed_entries = :protect_fed_entries,
    version = version + 1, updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: touch_sink
-- A write to an entry changes its sink (contract S12).
UPDATE data_sink
SET entry_count = entry_count + :added, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: delete_sink
-- No request finds a deleted sink, and its id is free. Its rows are removed later, in steps.
UPDATE data_sink SET removed_to = 0, id = 'deleted ' || number, description = NULL, tags = NULL, icon = NULL
WHERE number = :number

-- name: count_sink_out
UPDATE workspace SET sink_count = sink_count - 1 WHERE id = :workspace_id

-- name: delete_sinks_of_workspace
UPDATE data_sink SET removed_to = 0, id = 'deleted ' || number, description = NULL, tags = NULL, icon = NULL
WHERE number IN (SELECT number FROM data_sink WHERE workspace = :workspace AND removed_to IS NULL LIMIT :most)

-- name: queue_for_removal
-- Lock the removal. No row: another process holds the lock. SQLite has one writer and needs no lock.
SELECT 1

-- name: any_deleted_sink
SELECT 1 FROM data_sink WHERE removed_to IS NOT NULL LIMIT 1

-- name: deleted_sink
SELECT number, removed_to FROM data_sink WHERE removed_to IS NOT NULL LIMIT 1

-- name: deleted_sink_of_workspace
SELECT number, removed_to FROM data_sink WHERE workspace = :workspace AND removed_to IS NOT NULL LIMIT 1

-- name: remove_entries
-- Remove the entries after the last removed number, so that the dead rows of earlier steps are not read again.
DELETE FROM data_sink_entry
WHERE number IN (SELECT number FROM data_sink_entry WHERE sink + 0 = :sink AND number > :after
                 ORDER BY number NULLS FIRST LIMIT :most)
RETURNING number

-- name: note_removal
UPDATE data_sink SET removed_to = :number WHERE number = :sink

-- name: remove_sink
DELETE FROM data_sink WHERE number = :sink

-- name: find_entry
SELECT {entry_columns}
FROM data_sink_entry WHERE sink = :sink AND key = :key

-- name: list_entries
-- In the order of creation; entries of one request are sorted by key.
SELECT {entry_columns}
FROM data_sink_entry WHERE sink + 0 = :sink ORDER BY number NULLS FIRST

-- name: read_id_offset
SELECT scramble FROM data_sink_entry_numbers WHERE one = 1

-- name: find_entry_number_by_id
-- An id from a client is indexed. An id from the service contains the row's number. Last column: whether the sink is deleted.
SELECT e.number, e.sink, e.key, s.removed_to IS NOT NULL
FROM data_sink_entry e JOIN data_sink s ON s.number = e.sink WHERE e.id = :id AND e.id_supplied
UNION ALL
SELECT e.number, e.sink, e.key, s.removed_to IS NOT NULL
FROM data_sink_entry e JOIN data_sink s ON s.number = e.sink
WHERE e.number = :number AND e.id = :id AND NOT e.id_supplied

-- name: take_numbers
UPDATE data_sink_entry_numbers SET last_number = last_number + :count WHERE one = 1 RETURNING last_number, scramble

-- name: upsert_entry
-- Insert one entry or, if the key exists and the observation is not older, update it. If the data type is NULL, an existing
-- entry keeps its data type, and a new entry gets the default. An older observation returns no row.
INSERT INTO data_sink_entry (number, sink, key, value, data_type, id, id_supplied, observed_at, version,
                             created_at, updated_at, created_by, updated_by, origin)
VALUES (:number, :sink, :key, :value, coalesce(:data_type, :default_data_type),
        coalesce(:id, printf('%08x-%04x-4%03x-%04x-%012x', random() & 0xffffffff, random() & 0xffff, random() & 0xfff,
                             0x8000 | (random() & 0x3fff), (:number * :multiplier + :id_offset) & 0xffffffffffff)),
        :id IS NOT NULL, :observed_at, 1, :now, :now, :actor, :actor, :origin)
ON CONFLICT (sink, key) DO UPDATE
SET value = excluded.value, data_type = coalesce(:data_type, data_type),
    observed_at = coalesce(excluded.observed_at, observed_at), version = version + 1,
    updated_at = max(updated_at, excluded.updated_at), updated_by = excluded.updated_by,
    origin = coalesce(excluded.origin, -abs(origin))
WHERE excluded.observed_at IS NULL OR data_sink_entry.observed_at IS NULL
   OR excluded.observed_at >= data_sink_entry.observed_at
RETURNING {entry_columns}

-- name: update_entry
UPDATE data_sink_entry
SET value = :value, data_type = :data_type, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor,
    origin = -abs(origin)
WHERE number = :number

-- name: delete_entry
DELETE FROM data_sink_entry WHERE number = :number

-- name: staged
staged_change s

-- name: make_stage
CREATE TEMP TABLE IF NOT EXISTS staged_change (
    ordinal INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT, data_type TEXT, id TEXT, observed_at INTEGER,
    remove INTEGER NOT NULL DEFAULT 0, origin INTEGER)

-- name: clear_stage
DELETE FROM staged_change

-- name: stage
INSERT INTO staged_change (key, value, data_type, id, observed_at, remove, origin) VALUES

-- name: stage_plain
INSERT INTO staged_change (key, value, data_type) VALUES

-- name: stage_with_origin
INSERT INTO staged_change (key, value, data_type, origin) VALUES

-- name: compare_stage
-- Count the staged items of existing entries: stale items, updates, updates without a difference, removals, stale upserts. On
-- PostgreSQL, this statement also writes the items, and the statements that write items are empty.
SELECT count(*) FILTER (WHERE stale),
       count(*) FILTER (WHERE NOT stale AND NOT remove),
       count(*) FILTER (WHERE NOT stale AND NOT remove AND same),
       count(*) FILTER (WHERE NOT stale AND remove),
       count(*) FILTER (WHERE stale AND NOT remove)
FROM (SELECT s.remove AS remove,
             coalesce(s.observed_at < e.observed_at, 0) AS stale,
             s.value IS e.value AND (s.data_type IS NULL OR s.data_type = e.data_type) AS same
      FROM {staged} CROSS JOIN data_sink_entry e
      WHERE e.sink = :sink AND e.key = s.key)

-- name: keep_data_types
-- An existing entry keeps its data type if none is given. This is a separate statement, because an INSERT that reads its own
-- table first copies all rows that it reads.
UPDATE staged_change
SET data_type = (SELECT e.data_type FROM data_sink_entry e WHERE e.sink = :sink AND e.key = staged_change.key)
WHERE data_type IS NULL

-- name: record_stage
-- Add the staged items that change an entry to the history. A change is never earlier than the last change of its key, even
-- if that change belongs to a deleted entry.
INSERT INTO entry_change (sink, key, at, old_value, old_data_type, actor, key_id, client_id, request_id, operation,
                          old_origin)
SELECT :sink, s.key,
       max(:now, coalesce(e.updated_at, 0),
           coalesce((SELECT c.at FROM entry_change c WHERE c.sink = :sink AND c.key = s.key ORDER BY c.at DESC LIMIT 1), 0)),
       e.value, e.data_type, :actor, :key_id, :client_id, :request_id, :operation, e.origin
FROM {staged} LEFT JOIN data_sink_entry e ON e.sink = :sink AND e.key = s.key
WHERE CASE WHEN e.number IS NULL THEN NOT s.remove
           WHEN s.observed_at < e.observed_at THEN 0
           ELSE s.remove OR s.value IS NOT e.value OR (s.data_type IS NOT NULL AND s.data_type <> e.data_type) END
ORDER BY s.ordinal

-- name: count_numbers
-- Reserve the last :count numbers for the staged items.
UPDATE data_sink_entry_numbers SET last_number = last_number + :count WHERE one = 1

-- name: upsert_stage
{staged_upsert}

-- name: upsert_stage_returning
-- Return the entries that were written.
{staged_upsert}
RETURNING {entry_columns}

-- name: staged_upsert
-- :origin is added to each staged origin. So an origin that all items share need not be staged with each item.
INSERT INTO data_sink_entry (number, sink, key, value, data_type, id, id_supplied, observed_at, version,
                             created_at, updated_at, created_by, updated_by, origin)
SELECT n.last_number - :count + s.ordinal, :sink, s.key, s.value,
       coalesce(s.data_type, :default_data_type),
       coalesce(s.id,
                printf('%08x-%04x-4%03x-%04x-%012x', random() & 0xffffffff, random() & 0xffff, random() & 0xfff,
                       0x8000 | (random() & 0x3fff),
                       ((n.last_number - :count + s.ordinal) * :multiplier + n.scramble) & 0xffffffffffff)),
       s.id IS NOT NULL, s.observed_at, 1, :now, :now, :actor, :actor, s.origin + :origin
FROM {staged} CROSS JOIN data_sink_entry_numbers n
WHERE NOT s.remove AND n.one = 1 ORDER BY s.ordinal
ON CONFLICT (sink, key) DO UPDATE
SET value = excluded.value, data_type = excluded.data_type,
    observed_at = coalesce(excluded.observed_at, observed_at), version = version + 1,
    updated_at = max(updated_at, excluded.updated_at), updated_by = excluded.updated_by,
    origin = coalesce(excluded.origin, -abs(origin))
WHERE excluded.observed_at IS NULL OR data_sink_entry.observed_at IS NULL
   OR excluded.observed_at >= data_sink_entry.observed_at

-- name: delete_stage
DELETE FROM data_sink_entry
WHERE number IN (SELECT e.number FROM {staged} CROSS JOIN data_sink_entry e
                 WHERE s.remove AND e.sink = :sink AND e.key = s.key
                   AND NOT coalesce(s.observed_at < e.observed_at, 0))

-- name: entries_of_stage
SELECT {qualified_columns}
FROM {staged} CROSS JOIN data_sink_entry e WHERE e.sink = :sink AND e.key = s.key

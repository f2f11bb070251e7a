-- A stretch of a sink's entries; columns in the order of values.StoredEntry. `pattern` NULL: all keys. Keys compare by their
-- lower-case form, of ASCII letters only, so that every database finds the same ones. Where no index has the order, only
-- numbers are sorted, and the rows are looked up for the stretch alone.

-- name: count
SELECT count(*) FROM data_sink_entry WHERE sink = :sink AND lower(key) LIKE :pattern ESCAPE '\'

-- name: key_asc
SELECT number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by
FROM data_sink_entry WHERE sink = :sink AND (CAST(:pattern AS TEXT) IS NULL OR lower(key) LIKE :pattern ESCAPE '\')
ORDER BY key LIMIT :take OFFSET :skip

-- name: key_desc
SELECT number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by
FROM data_sink_entry WHERE sink = :sink AND (CAST(:pattern AS TEXT) IS NULL OR lower(key) LIKE :pattern ESCAPE '\')
ORDER BY key DESC LIMIT :take OFFSET :skip

-- name: created_asc
SELECT number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by
FROM data_sink_entry
WHERE number IN (
    SELECT number FROM data_sink_entry
    WHERE sink = :sink AND (CAST(:pattern AS TEXT) IS NULL OR lower(key) LIKE :pattern ESCAPE '\')
    ORDER BY created_at, key LIMIT :take OFFSET :skip)
ORDER BY created_at, key

-- name: created_desc
SELECT number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by
FROM data_sink_entry
WHERE number IN (
    SELECT number FROM data_sink_entry
    WHERE sink = :sink AND (CAST(:pattern AS TEXT) IS NULL OR lower(key) LIKE :pattern ESCAPE '\')
    ORDER BY created_at DESC, key LIMIT :take OFFSET :skip)
ORDER BY created_at DESC, key

-- name: updated_asc
SELECT number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by
FROM data_sink_entry
WHERE number IN (
    SELECT number FROM data_sink_entry
    WHERE sink = :sink AND (CAST(:pattern AS TEXT) IS NULL OR lower(key) LIKE :pattern ESCAPE '\')
    ORDER BY updated_at, key LIMIT :take OFFSET :skip)
ORDER BY updated_at, key

-- name: updated_desc
SELECT number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by
FROM data_sink_entry
WHERE number IN (
    SELECT number FROM data_sink_entry
    WHERE sink = :sink AND (CAST(:pattern AS TEXT) IS NULL OR lower(key) LIKE :pattern ESCAPE '\')
    ORDER BY updated_at DESC, key LIMIT :take OFFSET :skip)
ORDER BY updated_at DESC, key

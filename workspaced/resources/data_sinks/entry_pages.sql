-- Pages of a sink's entries; columns are in the order of values.StoredEntry. A page in an indexed order begins after :after.
-- The order of creation is the order of the numbers. lower() changes only ASCII letters, so both databases find the same rows.
-- A page of a search examines at most :walk entries.
-- NULLS FIRST and NULLS LAST are the default order of SQLite. PostgreSQL needs them to use the right index.

-- name: columns
number, id, key, value, data_type, observed_at, version, created_at, updated_at, created_by, updated_by, origin

-- name: count
-- Used only for sinks of bounded size.
SELECT count(*) FROM data_sink_entry WHERE sink = :sink AND lower(key) LIKE :pattern ESCAPE '\'

-- name: filter_matches
-- The search (of keys if :keys is 1, of values if :texts is 1) and the filters. Keys are between :low and :high, both excluded.
(CAST(:pattern AS TEXT) IS NULL
     OR (:keys = 1 AND lower(key) LIKE :pattern ESCAPE '\')
     OR (:texts = 1 AND (lower(value) LIKE :pattern ESCAPE '\'
                         OR (CAST(:exact AS TEXT) IS NOT NULL AND lower(value) LIKE :exact ESCAPE '\'))))
    AND key > :low AND key < :high
    AND (CAST(:data_type AS TEXT) IS NULL OR data_type = :data_type)
    AND (CAST(:author AS TEXT) IS NULL OR updated_by = :author)
    AND updated_at >= :since AND updated_at < :until
    AND (:ranged = 0 OR number_of(value) BETWEEN :least AND :most)

-- name: count_range
-- The number of keys between :low and :high, up to :walk.
SELECT count(*)
FROM (SELECT 1 FROM data_sink_entry WHERE sink = :sink AND key > :low AND key < :high LIMIT :walk) AS walked

-- name: next_entry
SELECT {columns}
FROM data_sink_entry WHERE sink = :sink AND key > :after AND key < :high ORDER BY key LIMIT 1

-- name: count_filter
-- Used only for ranges of bounded size.
SELECT count(*) FROM data_sink_entry WHERE sink = :sink AND {filter_matches}

-- name: created_asc_filter
SELECT {columns}
FROM (SELECT {columns}
      FROM data_sink_entry WHERE sink + 0 = :sink AND number {>|<} :after ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT :walk) AS walked
WHERE {filter_matches}
ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT :take OFFSET :skip

-- name: key_asc_filter
-- :bound is the end of the range of keys.
SELECT {columns}
FROM (SELECT {columns}
      FROM data_sink_entry WHERE sink = :sink AND key {>|<} :after AND key {<|>} :bound ORDER BY key{| DESC} LIMIT :walk) AS walked
WHERE {filter_matches}
ORDER BY key{| DESC} LIMIT :take OFFSET :skip

-- name: natural_asc
-- No index has the order by natural key, value, type or author. So these statements are used only for ranges of bounded size.
SELECT {columns}
FROM data_sink_entry
WHERE number IN (SELECT number FROM data_sink_entry WHERE sink = :sink AND {filter_matches}
                 ORDER BY natural_key(key){| DESC}, key{| DESC} LIMIT :take OFFSET :skip)
ORDER BY natural_key(key){| DESC}, key{| DESC}

-- name: value_asc
-- Numbers, then other texts, then nulls.
SELECT {columns}
FROM data_sink_entry
WHERE number IN (SELECT number FROM data_sink_entry WHERE sink = :sink AND {filter_matches}
                 ORDER BY number_of(value) IS NULL, number_of(value){| DESC}, value IS NULL, value{| DESC}, key
                 LIMIT :take OFFSET :skip)
ORDER BY number_of(value) IS NULL, number_of(value){| DESC}, value IS NULL, value{| DESC}, key

-- name: type_asc
SELECT {columns}
FROM data_sink_entry
WHERE number IN (SELECT number FROM data_sink_entry WHERE sink = :sink AND {filter_matches}
                 ORDER BY data_type{| DESC}, key LIMIT :take OFFSET :skip)
ORDER BY data_type{| DESC}, key

-- name: author_asc
SELECT {columns}
FROM data_sink_entry
WHERE number IN (SELECT number FROM data_sink_entry WHERE sink = :sink AND {filter_matches}
                 ORDER BY updated_by{| DESC}, key LIMIT :take OFFSET :skip)
ORDER BY updated_by{| DESC}, key

-- name: created_asc
SELECT {columns}
FROM data_sink_entry WHERE sink + 0 = :sink AND number {>|<} :after
ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT :take OFFSET :skip

-- name: key_asc
SELECT {columns}
FROM data_sink_entry WHERE sink = :sink AND key {>|<} :after
ORDER BY key{| DESC} LIMIT :take OFFSET :skip

-- name: created_asc_search
SELECT {columns}
FROM (SELECT {columns}
      FROM data_sink_entry WHERE sink + 0 = :sink AND number {>|<} :after ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT :walk) AS walked
WHERE lower(key) LIKE :pattern ESCAPE '\'
ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT :take OFFSET :skip

-- name: key_asc_search
SELECT e.number, e.id, e.key, e.value, e.data_type, e.observed_at, e.version, e.created_at, e.updated_at, e.created_by,
       e.updated_by, e.origin
FROM (SELECT number, key FROM data_sink_entry WHERE sink = :sink AND key {>|<} :after ORDER BY key{| DESC} LIMIT :walk) AS walked
CROSS JOIN data_sink_entry e
WHERE e.number = walked.number AND lower(walked.key) LIKE :pattern ESCAPE '\'
ORDER BY walked.key{| DESC} LIMIT :take OFFSET :skip

-- name: created_asc_span
-- Of the next :walk entries: the last position, the count, and the number of characters in the values.
SELECT {max|min}(number), count(*), coalesce(sum(length(value)), 0)
FROM (SELECT number, value FROM data_sink_entry WHERE sink + 0 = :sink AND number {>|<} :after ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT :walk) AS walked

-- name: key_asc_span
SELECT {max|min}(key), count(*), coalesce(sum(length(value)), 0)
FROM (SELECT key, value FROM data_sink_entry
      WHERE sink = :sink AND key {>|<} :after AND key {<|>} :bound ORDER BY key{| DESC} LIMIT :walk) AS walked

-- name: created_asc_end
-- The position of entry :walk + 1 after :after; no row if there are fewer entries.
SELECT number FROM data_sink_entry WHERE sink + 0 = :sink AND number {>|<} :after ORDER BY number {NULLS FIRST|DESC NULLS LAST} LIMIT 1 OFFSET :walk

-- name: key_asc_end
SELECT key FROM data_sink_entry
WHERE sink = :sink AND key {>|<} :after AND key {<|>} :bound ORDER BY key{| DESC} LIMIT 1 OFFSET :walk

-- name: updated_asc
-- No index has this order, because each update would move a row of the index. So it is used only for sinks of bounded size.
-- The inner query sorts only row numbers; whole rows are read only for the page.
SELECT {columns}
FROM data_sink_entry
WHERE number IN (
    SELECT number FROM data_sink_entry
    WHERE sink = :sink AND {filter_matches}
      AND (updated_at > :instant OR (updated_at = :instant AND key > :after))
    ORDER BY updated_at, key LIMIT :take OFFSET :skip)
ORDER BY updated_at, key

-- name: updated_desc
SELECT {columns}
FROM data_sink_entry
WHERE number IN (
    SELECT number FROM data_sink_entry
    WHERE sink = :sink AND {filter_matches}
      AND (updated_at < :instant OR (updated_at = :instant AND key > :after))
    ORDER BY updated_at DESC, key LIMIT :take OFFSET :skip)
ORDER BY updated_at DESC, key

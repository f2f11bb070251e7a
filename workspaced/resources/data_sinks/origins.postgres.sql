-- PostgreSQL's variants of the statements of origins.

-- name: find
SELECT digest, number FROM entry_origin
WHERE sink = :sink AND digest = ANY (ARRAY(SELECT json_array_elements_text(:digests::json))) AND kept_at > :since

-- name: keep
INSERT INTO entry_origin (sink, digest, source, file, run, pipeline, link, kept_at)
SELECT :sink, digest, source, file, run, pipeline, link, :now
FROM json_to_recordset(:origins::json) AS given (digest text, source text, file text, run text, pipeline text, link text)
ON CONFLICT (sink, digest) DO UPDATE SET kept_at = excluded.kept_at
RETURNING digest, number

-- name: list
SELECT number, source, file, run, pipeline, link FROM entry_origin
WHERE number = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:numbers::json)))

-- name: confirm
UPDATE entry_origin SET kept_at = :now
WHERE number = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:numbers::json))) AND kept_at < :now

-- name: drop
DELETE FROM entry_origin
WHERE number = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:numbers::json))) AND kept_at < :before

-- PostgreSQL's variants of the statements of origins.

-- name: list
SELECT number, source, file, run, pipeline, link FROM entry_origin
WHERE number = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:numbers::json)))

-- name: confirm
UPDATE entry_origin SET kept_at = :now
WHERE number = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:numbers::json))) AND kept_at < :now

-- name: drop
DELETE FROM entry_origin
WHERE number = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(:numbers::json))) AND kept_at < :before

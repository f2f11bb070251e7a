-- name: has_steps
SELECT count(to_regclass('schema_step'))

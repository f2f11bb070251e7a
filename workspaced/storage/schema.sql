-- The migration steps that were done.

-- name: has_steps
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_step'

-- name: last_step
SELECT number, oldest_program FROM schema_step WHERE number = (SELECT max(number) FROM schema_step)

-- name: add_step
INSERT INTO schema_step (number, oldest_program, at) VALUES (:number, :oldest_program, :at)

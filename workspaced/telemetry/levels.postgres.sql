-- PostgreSQL's variant.

-- name: database_bytes
SELECT pg_database_size(current_database())

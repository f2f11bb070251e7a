-- PostgreSQL's variants of statements.

-- name: database_bytes
SELECT pg_database_size(current_database())

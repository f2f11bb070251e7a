-- This clock also advances within a transaction.

-- name: now
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint

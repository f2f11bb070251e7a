-- Also within a transaction it goes on.

-- name: now
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- The clock of the database, in milliseconds since 1970.

-- name: now
SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)

-- Variants for PostgreSQL.

-- hold: find
FOR UPDATE

-- Leases of writers. Times are milliseconds since 1970, by the database's clock.

-- name: find
SELECT writer, principal, holder, epoch, ends_at, successor FROM writer_lease WHERE writer = :writer

-- name: create
-- If another transaction has created the row meanwhile, that row stays.
INSERT INTO writer_lease (writer, principal, holder, epoch, ends_at, successor) VALUES (:writer, :principal, '', 1, 0, '')
ON CONFLICT (writer) DO NOTHING

-- name: set
UPDATE writer_lease SET holder = :holder, epoch = :epoch, ends_at = :ends_at, successor = :successor WHERE writer = :writer

-- name: count
SELECT count(*) FROM writer_lease WHERE principal = :principal

-- name: drop_ended
DELETE FROM writer_lease WHERE principal = :principal AND ends_at < :before

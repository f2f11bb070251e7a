-- Shipments and leases in a schema of PostgreSQL, which is the search path of each connection.

-- name: has_tables
SELECT to_regclass('shipment_object') IS NOT NULL AND to_regclass('writer_lease') IS NOT NULL

-- name: has_schema
SELECT to_regnamespace(current_setting('search_path')) IS NOT NULL

-- name: creation_lock
-- Without this lock, two hosts that start at once could fail: IF NOT EXISTS does not wait for another transaction.
SELECT pg_advisory_xact_lock(hashtext('ingestd standby ' || current_setting('search_path')))

-- name: create_objects
CREATE TABLE IF NOT EXISTS shipment_object (name text COLLATE "C" PRIMARY KEY, data bytea NOT NULL)

-- name: store_objects_as_they_are
-- Objects are compressed already.
ALTER TABLE shipment_object ALTER COLUMN data SET STORAGE EXTERNAL

-- name: create_leases
CREATE TABLE IF NOT EXISTS writer_lease (
    writer text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    ends_at timestamptz NOT NULL,
    successor text NOT NULL
)

-- name: put_object
INSERT INTO shipment_object (name, data) VALUES (%(name)s, %(data)s)
ON CONFLICT (name) DO UPDATE SET data = excluded.data RETURNING name

-- name: put_new_object
INSERT INTO shipment_object (name, data) VALUES (%(name)s, %(data)s) ON CONFLICT (name) DO NOTHING RETURNING name

-- name: get_object
SELECT data FROM shipment_object WHERE name = %(name)s AND octet_length(data) <= %(most)s

-- name: object_names
SELECT name FROM shipment_object WHERE name >= %(first)s AND name < %(end)s

-- name: delete_object
DELETE FROM shipment_object WHERE name = %(name)s

-- The statements on leases use clock_timestamp(): the time after they have waited for the row. No row: the lease is refused.

-- name: find_lease
SELECT holder, epoch, ends_at, successor, clock_timestamp() FROM writer_lease WHERE writer = %(writer)s

-- name: take_lease
-- The first epoch is 2, because a daemon without a lease has epoch 1. The row may be older than the granted epoch "above".
INSERT INTO writer_lease AS lease (writer, holder, epoch, ends_at, successor)
VALUES (%(writer)s, %(holder)s, greatest(1, %(above)s) + 1, clock_timestamp() + make_interval(secs => %(seconds)s), '')
ON CONFLICT (writer) DO UPDATE SET holder = excluded.holder, epoch = greatest(lease.epoch, %(above)s) + 1, successor = '',
    ends_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE lease.ends_at <= clock_timestamp() OR lease.holder = excluded.holder
RETURNING holder, epoch, ends_at, successor, clock_timestamp()

-- name: renew_lease
UPDATE writer_lease SET ends_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE writer = %(writer)s AND holder = %(holder)s AND epoch = %(epoch)s
RETURNING holder, epoch, ends_at, successor, clock_timestamp()

-- name: release_lease
UPDATE writer_lease SET successor = '', holder = CASE successor WHEN '' THEN holder ELSE successor END,
    ends_at = clock_timestamp() + CASE successor WHEN '' THEN interval '0' ELSE make_interval(secs => %(seconds)s) END
WHERE writer = %(writer)s AND holder = %(holder)s AND epoch = %(epoch)s
RETURNING holder, epoch, ends_at, successor, clock_timestamp()

-- name: ask_for_lease
UPDATE writer_lease SET successor = %(holder)s WHERE writer = %(writer)s
RETURNING holder, epoch, ends_at, successor, clock_timestamp()

-- What is asked of the database when the numbers are read. Counts over partial indexes, so they cost what waits, not what was.

-- name: waiting_deliveries
SELECT status, count(*), min(created_at) FROM delivery WHERE status IN ('pending', 'failed') GROUP BY status

-- name: webhooks
SELECT enabled, count(*) FROM webhook GROUP BY enabled

-- name: open_conversions
SELECT state, count(*) FROM conversion WHERE state IN ('pending', 'in_progress') GROUP BY state

-- name: database_bytes
SELECT count.page_count * size.page_size FROM pragma_page_count() AS count, pragma_page_size() AS size

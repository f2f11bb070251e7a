-- What is asked of the database when the numbers are read. Counts over partial indexes, so they cost what waits, not what was.

-- name: waiting_deliveries
SELECT 'pending', count(*), min(created_at) FROM delivery WHERE status = 'pending'
UNION ALL
SELECT 'failed', count(*), min(created_at) FROM delivery WHERE status = 'failed'

-- name: waiting_events
-- Of events that have no deliveries yet: how many deliveries they will be at the most, and since when the oldest waits.
SELECT coalesce(sum(f.last_event - f.first_event + 1), 0), min(e.created_at)
FROM event_fan_out f LEFT JOIN event e ON e.number = f.first_event

-- name: webhooks
SELECT enabled, count(*) FROM webhook WHERE removed_to IS NULL GROUP BY enabled

-- name: open_conversions
SELECT state, count(*) FROM conversion WHERE state IN ('pending', 'in_progress') GROUP BY state

-- name: database_bytes
SELECT count.page_count * size.page_size FROM pragma_page_count() AS count, pragma_page_size() AS size

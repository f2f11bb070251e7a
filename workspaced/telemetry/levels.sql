-- Sizes of queues for metrics. The counts use partial indexes, so their cost depends on waiting rows only.

-- name: waiting_deliveries
SELECT 'pending', count(*), min(created_at) FROM delivery WHERE status = 'pending'
UNION ALL
SELECT 'failed', count(*), min(created_at) FROM delivery WHERE status = 'failed'

-- name: waiting_events
-- Events without deliveries: the largest number of deliveries that they can get, and the time of the oldest event.
SELECT coalesce(sum(f.last_event - f.first_event + 1), 0), min(e.created_at)
FROM event_fan_out f LEFT JOIN event e ON e.number = f.first_event

-- name: webhooks
SELECT enabled, count(*) FROM webhook WHERE removed_to IS NULL GROUP BY enabled

-- name: open_conversions
SELECT state, count(*) FROM conversion WHERE state IN ('pending', 'in_progress') GROUP BY state

-- name: database_bytes
SELECT count.page_count * size.page_size FROM pragma_page_count() AS count, pragma_page_size() AS size

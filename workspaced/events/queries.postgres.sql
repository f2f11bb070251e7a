-- PostgreSQL's variants of the statements of the outbox.

-- name: take_numbers
SELECT take_numbers('event_number', :count)

-- name: queue_for_fan_out
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('fan-out of events', 0))

-- hold: last_waiting
-- Locked, so that no process claims the delivery while its event is replaced.
FOR UPDATE OF d

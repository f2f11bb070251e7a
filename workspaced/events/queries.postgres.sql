-- What PostgreSQL says otherwise about the outbox.

-- name: take_numbers
SELECT take_numbers('event_number', :count)

-- name: queue_for_fan_out
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('fan-out of events', 0))

-- hold: last_waiting
-- Held, so that nobody takes it out for sending while another event is put into it.
FOR UPDATE OF d

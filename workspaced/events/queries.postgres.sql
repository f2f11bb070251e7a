-- What PostgreSQL says otherwise about the outbox.

-- name: take_numbers
SELECT take_numbers('event_number', :count)

-- hold: last_waiting
-- Held, so that nobody takes it out for sending while another event is put into it.
FOR UPDATE OF d

-- Two processes may have the same request at once; the second waits here for the first.

-- name: queue_for_slot
SELECT pg_advisory_xact_lock(hashtextextended('idempotency ' || encode(:slot, 'hex'), 0))

-- name: drop_expired
DELETE FROM idempotent_answer
WHERE number IN (SELECT number FROM idempotent_answer ORDER BY number LIMIT 2 FOR UPDATE SKIP LOCKED)
  AND created_at <= :since

-- Two processes may handle the same request at once. The second process waits here for the first.

-- name: queue_for_slot
SELECT pg_advisory_xact_lock(hashtextextended('idempotency ' || encode(:slot, 'hex'), 0))

-- name: queue_for_slots
-- In the order of the digests, so that two processes never deadlock.
SELECT count(pg_advisory_xact_lock(hashtextextended(
    'idempotency ' || encode(substring(:slots FROM 1 + 32 * n FOR 32), 'hex'), 0)))
FROM generate_series(0, CAST(:count AS integer) - 1) AS n

-- name: find_each
SELECT slot, fingerprint, status, headers, body, created_at FROM idempotent_response
WHERE slot = ANY (ARRAY(SELECT substring(:slots FROM 1 + 32 * n FOR 32) FROM generate_series(0, CAST(:count AS integer) - 1) AS n))

-- name: drop_expired
DELETE FROM idempotent_response
WHERE number IN (SELECT number FROM idempotent_response ORDER BY number LIMIT :most FOR UPDATE SKIP LOCKED)
  AND created_at <= :since

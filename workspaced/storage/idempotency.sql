-- Stored responses, for repetitions of a POST.

-- name: queue_for_slot
-- Waits until other transactions with this slot have ended. SQLite has only one writer, so nothing waits.
SELECT 1

-- name: find
SELECT fingerprint, status, headers, body, created_at FROM idempotent_response WHERE slot = :slot AND created_at > :since

-- name: queue_for_slots
-- Waits like queue_for_slot, for several slots: a blob of sorted digests of 32 bytes each.
SELECT 1

-- name: find_each
WITH RECURSIVE requested (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM requested WHERE n + 1 < :count)
SELECT slot, fingerprint, status, headers, body, created_at FROM idempotent_response
WHERE slot IN (SELECT substr(:slots, 1 + 32 * n, 32) FROM requested)

-- name: save_each
INSERT INTO idempotent_response (slot, fingerprint, status, headers, body, created_at) VALUES

-- name: save
-- Replaces an expired row of the same slot.
INSERT INTO idempotent_response (slot, fingerprint, status, headers, body, created_at)
VALUES (:slot, :fingerprint, :status, :headers, :body, :now)
ON CONFLICT (slot) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
    headers = excluded.headers, body = excluded.body, created_at = excluded.created_at

-- name: drop_expired
-- Up to two expired rows are deleted for each stored row, so the table needs no periodic job.
DELETE FROM idempotent_response
WHERE number IN (SELECT number FROM idempotent_response ORDER BY number LIMIT :most) AND created_at <= :since

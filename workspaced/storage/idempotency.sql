-- Stored responses, for repetitions of a POST.

-- name: queue_for_slot
-- Waits until other transactions with this slot have ended; SQLite has only one writer.
SELECT 1

-- name: find
SELECT fingerprint, status, headers, body, created_at FROM idempotent_answer WHERE slot = :slot AND created_at > :since

-- name: queue_for_slots
-- The same for many slots: a blob of digests of 32 bytes each, sorted.
SELECT 1

-- name: find_each
WITH RECURSIVE requested (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM requested WHERE n + 1 < :count)
SELECT slot, fingerprint, status, headers, body, created_at FROM idempotent_answer
WHERE slot IN (SELECT substr(:slots, 1 + 32 * n, 32) FROM requested)

-- name: save_each
INSERT INTO idempotent_answer (slot, fingerprint, status, headers, body, created_at) VALUES

-- name: save
-- A row with the same slot has expired.
INSERT INTO idempotent_answer (slot, fingerprint, status, headers, body, created_at)
VALUES (:slot, :fingerprint, :status, :headers, :body, :now)
ON CONFLICT (slot) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
    headers = excluded.headers, body = excluded.body, created_at = excluded.created_at

-- name: drop_expired
-- Two rows are deleted for each that is stored, so the table keeps little more than unexpired rows, without a job of its own.
DELETE FROM idempotent_answer
WHERE number IN (SELECT number FROM idempotent_answer ORDER BY number LIMIT :most) AND created_at <= :since

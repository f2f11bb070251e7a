-- Answers kept for a while, so that a repeated POST gets the first one's.

-- name: queue_for_slot
-- Whoever asks for a slot in order to fill it does so alone until the commit; SQLite's one writer is alone anyway.
SELECT 1

-- name: find
SELECT fingerprint, status, headers, body FROM idempotent_answer WHERE slot = :slot AND created_at > :since

-- name: save
-- A row under the same slot is an expired one.
INSERT INTO idempotent_answer (slot, fingerprint, status, headers, body, created_at)
VALUES (:slot, :fingerprint, :status, :headers, :body, :now)
ON CONFLICT (slot) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,
    headers = excluded.headers, body = excluded.body, created_at = excluded.created_at

-- name: drop_expired
-- Two go for one that comes, so the table shrinks to what is still of use without a job of its own.
DELETE FROM idempotent_answer
WHERE number IN (SELECT number FROM idempotent_answer ORDER BY number LIMIT 2) AND created_at <= :since

-- A transaction that changes a webhook locks it when it reads it; one that adds a webhook locks the owner's count.

-- name: queue_for_owner
SELECT pg_advisory_xact_lock(hashtextextended('webhook owner ' || :owner::text, 0))

-- hold: find_webhook
FOR NO KEY UPDATE OF w

-- name: queue_for_removal
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('removal of webhooks', 0))

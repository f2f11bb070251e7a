-- A transaction that changes a webhook locks its row. A transaction that adds a webhook locks the count of the owner's webhooks.

-- name: queue_for_owner
SELECT pg_advisory_xact_lock(hashtextextended('webhook owner ' || :owner::text, 0))

-- hold: find_webhook
FOR NO KEY UPDATE OF w

-- name: queue_for_removal
SELECT 1 WHERE pg_try_advisory_xact_lock(hashtextextended('removal of webhooks', 0))

-- Webhooks. The columns of every SELECT of webhooks are in the order that store._webhook reads.

-- name: webhooks
-- Each webhook with its newest secret.
SELECT w.number, w.id, w.owner, w.label, w.url, w.headers, w.data_events, w.oauth, w.workspace_ids, w.ignore_client_ids,
       w.coalesce_updates, w.enabled, w.disabled_reason, s.secret, w.version, w.created_at, w.updated_at, w.created_by,
       w.updated_by, w.in_order, w.batch_entries
FROM webhook w JOIN webhook_secret s ON s.webhook = w.number AND s.valid_until IS NULL

-- name: list_webhooks
-- The webhooks of one owner or, if :all_owners is 1, of all owners.
{webhooks}
WHERE w.owner = :owner OR :all_owners = 1 ORDER BY w.number

-- name: find_webhook
{webhooks}
WHERE w.id = :id AND (w.owner = :owner OR :all_owners = 1)

-- name: find_webhook_by_number
{webhooks}
WHERE w.number = :number

-- name: id_in_use
SELECT 1 FROM webhook WHERE id = :id

-- name: queue_for_owner
-- Lock the count of an owner's webhooks until the commit, so that the quota holds. SQLite has one writer and needs no lock.
SELECT 1

-- name: count_of_owner
SELECT count(*) FROM webhook WHERE owner = :owner

-- name: insert_webhook
INSERT INTO webhook (id, owner, label, url, headers, data_events, oauth, workspace_ids, ignore_client_ids,
                     coalesce_updates, in_order, batch_entries, enabled, disabled_reason, version, created_at, updated_at,
                     created_by, updated_by)
VALUES (:id, :owner, :label, :url, :headers, :data_events, :oauth, :workspace_ids, :ignore_client_ids,
        :coalesce_updates, :in_order, :batch_entries, :enabled, :disabled_reason, 1, :now, :now, :actor, :actor)
RETURNING number

-- name: update_webhook
-- Enabling a webhook resets its failures.
UPDATE webhook
SET label = :label, url = :url, headers = :headers, data_events = :data_events, oauth = :oauth,
    workspace_ids = :workspace_ids, ignore_client_ids = :ignore_client_ids, coalesce_updates = :coalesce_updates,
    in_order = :in_order, batch_entries = :batch_entries,
    failing_since = CASE WHEN enabled = 0 AND :enabled = 1 THEN NULL ELSE failing_since END,
    failures = CASE WHEN enabled = 0 AND :enabled = 1 THEN 0 ELSE failures END,
    enabled = :enabled, disabled_reason = :disabled_reason, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: disabled_for
SELECT number FROM webhook WHERE enabled = 0 AND disabled_reason = :reason AND removed_to IS NULL

-- name: enable
UPDATE webhook
SET enabled = 1, disabled_reason = '', failing_since = NULL, failures = 0, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = 'system'
WHERE number = :number

-- name: touch_webhook
UPDATE webhook
SET version = version + 1, updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = :actor
WHERE number = :number

-- name: delete_webhook
-- A deleted webhook has no secret, so no request finds it. Its id is free. Its deliveries are removed later, in steps.
UPDATE webhook
SET removed_to = 0, id = 'deleted ' || number, owner = '', enabled = 0, label = '', url = '', headers = '', oauth = ''
WHERE number = :number

-- name: drop_all_secrets
DELETE FROM webhook_secret WHERE webhook = :number

-- name: drop_fan_outs
DELETE FROM event_fan_out WHERE webhook = :number

-- name: any_deleted_webhook
SELECT 1 FROM webhook WHERE removed_to IS NOT NULL LIMIT 1

-- name: queue_for_removal
-- Lock the removal. No row: another process holds the lock. SQLite has one writer and needs no lock.
SELECT 1

-- name: deleted_webhook
SELECT number, removed_to FROM webhook WHERE removed_to IS NOT NULL LIMIT 1

-- name: remove_deliveries
-- Remove the deliveries after the last removed number. The database also removes their attempts.
DELETE FROM delivery
WHERE number IN (SELECT number FROM delivery WHERE webhook = :webhook AND number > :after
                 ORDER BY number NULLS FIRST LIMIT :most)
RETURNING number

-- name: note_removal
UPDATE webhook SET removed_to = :number WHERE number = :webhook

-- name: remove_webhook
DELETE FROM webhook WHERE number = :webhook

-- name: insert_secret
INSERT INTO webhook_secret (webhook, secret, valid_until) VALUES (:webhook, :secret, NULL)

-- name: end_secrets
-- The present secrets expire at :until. A secret that expires earlier does not change.
UPDATE webhook_secret SET valid_until = :until
WHERE webhook = :webhook AND (valid_until IS NULL OR valid_until > :until)

-- name: drop_secrets
-- Drop expired secrets, and all secrets except the :most newest.
DELETE FROM webhook_secret
WHERE webhook = :webhook
  AND (valid_until <= :now
       OR number NOT IN (SELECT number FROM webhook_secret WHERE webhook = :webhook ORDER BY number DESC LIMIT :most))

-- name: signing_secrets
-- The secrets that are valid now, the newest first.
SELECT secret FROM webhook_secret
WHERE webhook = :webhook AND (valid_until IS NULL OR valid_until > :now) ORDER BY number DESC

-- name: sealed_texts
SELECT number, id, headers, oauth FROM webhook WHERE removed_to IS NULL ORDER BY number

-- name: sealed_secrets
SELECT s.number, w.id, s.secret FROM webhook_secret s JOIN webhook w ON w.number = s.webhook ORDER BY s.number

-- name: set_sealed_texts
UPDATE webhook SET headers = :headers, oauth = :oauth WHERE number = :number

-- name: set_secret
UPDATE webhook_secret SET secret = :secret WHERE number = :number

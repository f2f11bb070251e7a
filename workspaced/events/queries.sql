-- The outbox: who is to be told, and what waits for them.

-- name: enabled_webhooks
SELECT number, owner, data_events, workspace_ids, ignore_client_ids, coalesce_updates
FROM webhook WHERE enabled = 1 ORDER BY number

-- name: scopes_of_live_keys
SELECT scopes, guest FROM api_key
WHERE principal = :principal AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)

-- name: take_sequence
INSERT INTO event_sequence (workspace_id, last_sequence) VALUES (:workspace_id, :count)
ON CONFLICT (workspace_id) DO UPDATE SET last_sequence = event_sequence.last_sequence + :count
RETURNING last_sequence

-- name: take_numbers
UPDATE event_numbers SET last_number = last_number + :count WHERE one = 1 RETURNING last_number

-- name: insert_events
INSERT INTO event (number, id, type, workspace_id, sequence, body, created_at) VALUES

-- name: insert_deliveries
INSERT INTO delivery (number, id, webhook, event, resource, status, due_at, created_at) VALUES

-- name: last_waiting
-- The last thing that waits for a webhook about a resource, and whether nobody has begun to send it.
SELECT d.number, e.type, e.body, d.attempts = 0 AND d.lease IS NULL
FROM delivery d JOIN event e ON e.number = d.event
WHERE d.webhook = :webhook AND d.resource = :resource AND d.status = 'pending' ORDER BY d.number DESC LIMIT 1

-- name: replace_event
UPDATE delivery SET event = :event WHERE number = :number

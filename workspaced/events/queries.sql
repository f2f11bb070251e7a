-- The outbox: the webhooks that receive events, and the events that wait for them.

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

-- name: any_enabled_webhook
SELECT 1 FROM webhook WHERE enabled = 1 LIMIT 1

-- name: insert_events
INSERT INTO event (number, id, type, workspace_id, sequence, body, created_at, resource) VALUES

-- name: insert_deliveries
INSERT INTO delivery (number, id, webhook, event, resource, status, due_at, created_at) VALUES

-- name: waiting_webhooks
-- Webhooks with events that have no delivery yet. Later events of these webhooks must wait.
SELECT w.number FROM webhook w
WHERE w.enabled = 1 AND EXISTS (SELECT 1 FROM event_fan_out f WHERE f.webhook = w.number)

-- name: insert_fan_outs
INSERT INTO event_fan_out (number, webhook, types, first_event, last_event) VALUES

-- name: any_fan_out
SELECT 1 FROM event_fan_out LIMIT 1

-- name: queue_for_fan_out
-- Locks the creation of deliveries. No row: another process creates deliveries. SQLite has one writer and needs no lock.
SELECT 1

-- name: first_fan_out
SELECT f.number, f.webhook, f.types, f.first_event, f.last_event, w.coalesce_updates
FROM event_fan_out f JOIN webhook w ON w.number = f.webhook ORDER BY f.number LIMIT 1

-- name: events_from
SELECT number, type, resource, created_at FROM event
WHERE number >= :first AND number <= :last ORDER BY number LIMIT :most

-- name: event_of
SELECT id, workspace_id, sequence, body FROM event WHERE number = :number

-- name: advance_fan_out
UPDATE event_fan_out SET first_event = :first WHERE number = :number

-- name: end_fan_out
DELETE FROM event_fan_out WHERE number = :number

-- name: last_waiting
-- The last waiting delivery of a webhook for a resource, and whether no attempt is in progress.
SELECT d.number, e.type, e.body, d.attempts = 0 AND d.lease IS NULL
FROM delivery d JOIN event e ON e.number = d.event
WHERE d.webhook = :webhook AND d.resource = :resource AND d.status = 'pending' ORDER BY d.number DESC LIMIT 1

-- name: replace_event
UPDATE delivery SET event = :event WHERE number = :number

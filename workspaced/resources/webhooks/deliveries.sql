-- Deliveries: claims, outcomes, lists. A delivery with an expired lease has a due_at in the past.

-- name: webhooks_waiting
-- Enabled webhooks with deliveries that were not attempted yet. For each webhook: the oldest of these deliveries, and the
-- number of requests with first attempts in progress.
SELECT w.number, w.in_order, w.batch_entries,
       (SELECT min(p.number) FROM delivery p WHERE p.webhook = w.number AND p.status = 'pending') AS oldest,
       (SELECT count(DISTINCT x.lease) FROM delivery x
        WHERE x.webhook = w.number AND x.lease IS NOT NULL AND x.status = 'pending' AND x.due_at > :now)
FROM webhook w
WHERE w.enabled = 1 AND EXISTS (SELECT 1 FROM delivery p WHERE p.webhook = w.number AND p.status = 'pending')
ORDER BY oldest

-- name: waiting
-- The oldest deliveries of a webhook that were not attempted yet. A delivery in progress has a due_at in the future.
SELECT number, resource, due_at FROM delivery WHERE webhook = :webhook AND status = 'pending' ORDER BY number LIMIT :most

-- name: webhooks_due_again
-- Enabled webhooks with a due retry and no retry in progress. So retries for an unreachable receiver can't use all connections.
SELECT w.number, w.batch_entries,
       (SELECT min(f.due_at) FROM delivery f WHERE f.webhook = w.number AND f.status = 'failed') AS overdue
FROM webhook w
WHERE w.enabled = 1
  AND EXISTS (SELECT 1 FROM delivery f WHERE f.webhook = w.number AND f.status = 'failed' AND f.due_at <= :now)
  AND NOT EXISTS (SELECT 1 FROM delivery x
                  WHERE x.webhook = w.number AND x.lease IS NOT NULL AND x.status = 'failed' AND x.due_at > :now)
ORDER BY overdue LIMIT :most

-- name: due_again
SELECT number, resource, due_at FROM delivery
WHERE webhook = :webhook AND status = 'failed' AND due_at <= :now ORDER BY due_at, number LIMIT :most

-- name: next_due
-- The next instant after :now at which a delivery is due, or a lease ends.
SELECT min(due) FROM (
    SELECT (SELECT p.due_at FROM delivery p WHERE p.webhook = w.number AND p.status = 'pending' ORDER BY p.number LIMIT 1) AS due
    FROM webhook w WHERE w.enabled = 1
    UNION ALL
    SELECT (SELECT min(x.due_at) FROM delivery x
            WHERE x.webhook = w.number AND x.lease IS NOT NULL AND x.due_at > :now) AS due
    FROM webhook w WHERE w.enabled = 1
    UNION ALL
    SELECT (SELECT min(f.due_at) FROM delivery f
            WHERE f.webhook = w.number AND f.status = 'failed' AND f.due_at > :now) AS due
    FROM webhook w WHERE w.enabled = 1) AS instants
WHERE due > :now

-- name: limit_first_attempts
-- The condition on webhook makes the database use the index of waiting deliveries; also in limit_retries.
UPDATE delivery SET due_at = :latest
WHERE status = 'pending' AND webhook IN (SELECT number FROM webhook) AND due_at > :latest

-- name: limit_retries
UPDATE delivery SET due_at = :latest
WHERE status = 'failed' AND webhook IN (SELECT number FROM webhook) AND due_at > :latest AND tries = :tries

-- name: claim
-- Claim a delivery only if it still waits, because another process may have claimed it after it was selected.
UPDATE delivery SET lease = :lease, due_at = :until
WHERE number = :number AND due_at <= :now AND status IN ('pending', 'failed')
RETURNING id, resource, tries, attempts

-- name: identity_of
SELECT id, owner FROM webhook WHERE number = :number

-- name: owner_has_key
SELECT 1 FROM api_key
WHERE principal = :owner AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now) LIMIT 1

-- name: event_of
SELECT e.id, e.body FROM delivery d JOIN event e ON e.number = d.event WHERE d.number = :delivery

-- name: record_outcome
-- Only the holder of the lease records the outcome. After the lease ended, another process may have claimed the delivery.
UPDATE delivery
SET status = :status, tries = tries + 1, attempts = attempts + 1, due_at = :due_at, lease = NULL, finished_at = :finished_at
WHERE number = :number AND lease = :lease

-- name: release
UPDATE delivery SET lease = NULL, due_at = :now WHERE number = :number AND lease = :lease

-- name: insert_attempt
INSERT INTO delivery_attempt (delivery, ordinal, at, milliseconds, status_code, error, response)
VALUES (:delivery, :ordinal, :at, :milliseconds, :status_code, :error, :response)

-- name: note_success
UPDATE webhook SET failing_since = NULL, failures = 0 WHERE number = :number AND failing_since IS NOT NULL

-- name: note_failure
UPDATE webhook SET failures = failures + 1, failing_since = coalesce(failing_since, :now) WHERE number = :number
RETURNING failing_since, failures

-- name: disable
UPDATE webhook
SET enabled = 0, disabled_reason = :reason, version = version + 1,
    updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END, updated_by = 'system'
WHERE number = :number AND enabled = 1
RETURNING label

-- name: count_deliveries
-- Examine at most :walk deliveries. Return their count, and the count of those with the status.
SELECT count(*), count(*) FILTER (WHERE :status = '' OR status = :status)
FROM (SELECT status FROM delivery WHERE webhook = :webhook LIMIT :walk) AS walked

-- name: list_deliveries
-- The newest first. A page examines at most :walk deliveries.
SELECT d.number, d.id, e.id, e.type, e.workspace_id, e.sequence, d.status, d.attempts, d.due_at, d.created_at,
       d.finished_at
FROM (SELECT number, id, event, status, attempts, due_at, created_at, finished_at
      FROM delivery WHERE webhook = :webhook AND number < :after
      ORDER BY number DESC NULLS LAST LIMIT :walk) AS d
JOIN event e ON e.number = d.event
WHERE :status = '' OR d.status = :status
ORDER BY d.number DESC LIMIT :take

-- name: deliveries_end
-- The delivery :walk + 1 positions after :after, in the order of the list; no row if there are fewer deliveries.
SELECT id FROM delivery WHERE webhook = :webhook AND number < :after
ORDER BY number DESC NULLS LAST LIMIT 1 OFFSET :walk

-- name: find_delivery
SELECT d.number, d.id, e.id, e.type, e.workspace_id, e.sequence, d.status, d.attempts, d.due_at, d.created_at,
       d.finished_at
FROM delivery d JOIN event e ON e.number = d.event
WHERE d.webhook = :webhook AND d.id = :id

-- name: attempts_of
SELECT ordinal, at, milliseconds, status_code, error, response FROM delivery_attempt WHERE delivery = :delivery
ORDER BY ordinal

-- name: body_of
SELECT e.body FROM delivery d JOIN event e ON e.number = d.event WHERE d.number = :delivery

-- name: queue_again
-- A delivery that waits already, or is in progress, does not change.
UPDATE delivery SET status = 'pending', tries = 0, due_at = :now, finished_at = NULL
WHERE number = :number AND status <> 'pending' AND lease IS NULL

-- name: drop_old_events
-- Remove at most :most events. The database also removes their deliveries and attempts.
DELETE FROM event
WHERE number IN (SELECT number FROM event WHERE created_at < :before ORDER BY created_at LIMIT :most)

-- Deliveries: claimed, settled, listed. A lease that has run out shows as a due_at that has passed.

-- name: due_first
-- Of every enabled webhook the oldest delivery that waits for its first try; while that is under way its due_at lies in
-- the future, so there is one at a time.
SELECT d.number
FROM webhook w JOIN delivery d ON d.number = (
    SELECT p.number FROM delivery p WHERE p.webhook = w.number AND p.status = 'pending' ORDER BY p.number LIMIT 1)
WHERE w.enabled = 1 AND d.due_at <= :now ORDER BY d.number LIMIT :most

-- name: due_again
-- Of every enabled webhook the most overdue retry, unless one is under way: many that wait for a dead receiver must not
-- take all places.
SELECT d.number
FROM webhook w JOIN delivery d ON d.number = (
    SELECT f.number FROM delivery f
    WHERE f.webhook = w.number AND f.status = 'failed' AND f.due_at <= :now ORDER BY f.due_at, f.number LIMIT 1)
WHERE w.enabled = 1
  AND NOT EXISTS (SELECT 1 FROM delivery x
                  WHERE x.webhook = w.number AND x.lease IS NOT NULL AND x.status = 'failed' AND x.due_at > :now)
ORDER BY d.due_at, d.number LIMIT :most

-- name: next_due
-- The next instant after :now at which something is due, or a lease ends.
SELECT min(due) FROM (
    SELECT min(d.due_at) AS due
    FROM webhook w JOIN delivery d ON d.number = (
        SELECT p.number FROM delivery p WHERE p.webhook = w.number AND p.status = 'pending' ORDER BY p.number LIMIT 1)
    WHERE w.enabled = 1 AND d.due_at > :now
    UNION ALL
    SELECT (SELECT min(f.due_at) FROM delivery f
            WHERE f.webhook = w.number AND f.status = 'failed' AND f.due_at > :now) AS due
    FROM webhook w WHERE w.enabled = 1) AS instants

-- name: claim
UPDATE delivery SET lease = :lease, due_at = :until WHERE number = :number AND due_at <= :now
RETURNING id, webhook, event, tries, attempts

-- name: event_of
SELECT id, body FROM event WHERE number = :event

-- name: settle
-- Only by who holds the lease: another may have taken over, or the delivery may have been queued anew.
UPDATE delivery
SET status = :status, tries = tries + 1, attempts = attempts + 1, due_at = :due_at, lease = NULL, finished_at = :finished_at
WHERE number = :number AND lease = :lease

-- name: release
UPDATE delivery SET lease = NULL, due_at = :now WHERE number = :number AND lease = :lease

-- name: insert_attempt
INSERT INTO delivery_attempt (delivery, ordinal, at, milliseconds, status_code, error, answer)
VALUES (:delivery, :ordinal, :at, :milliseconds, :status_code, :error, :answer)

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

-- name: count_deliveries
SELECT count(*) FROM delivery WHERE webhook = :webhook AND (:status = '' OR status = :status)

-- name: list_deliveries
-- The newest first.
SELECT d.number, d.id, e.id, e.type, e.workspace_id, e.sequence, d.status, d.attempts, d.due_at, d.created_at,
       d.finished_at
FROM delivery d JOIN event e ON e.number = d.event
WHERE d.webhook = :webhook AND (:status = '' OR d.status = :status)
ORDER BY d.number DESC LIMIT :take OFFSET :skip

-- name: find_delivery
SELECT d.number, d.id, e.id, e.type, e.workspace_id, e.sequence, d.status, d.attempts, d.due_at, d.created_at,
       d.finished_at
FROM delivery d JOIN event e ON e.number = d.event
WHERE d.webhook = :webhook AND d.id = :id

-- name: attempts_of
SELECT ordinal, at, milliseconds, status_code, error, answer FROM delivery_attempt WHERE delivery = :delivery
ORDER BY ordinal

-- name: body_of
SELECT e.body FROM delivery d JOIN event e ON e.number = d.event WHERE d.number = :delivery

-- name: queue_again
-- One that waits already, or is under way, stays as it is.
UPDATE delivery SET status = 'pending', tries = 0, due_at = :now, finished_at = NULL
WHERE number = :number AND status <> 'pending' AND lease IS NULL

-- name: drop_old_events
-- Some at a time. Their deliveries and attempts go with them.
DELETE FROM event
WHERE number IN (SELECT number FROM event WHERE created_at < :before ORDER BY created_at LIMIT :most)

-- Conversions: queued, claimed, ended. A conversion with an expired lease has a due_at in the past.

-- name: insert_conversion
INSERT INTO conversion (version, state, attempt, failures, due_at) VALUES (:version, :state, :attempt, 0, :now)

-- name: queue_again
-- A pending conversion does not change. A conversion in progress changes only if :force is 1.
UPDATE conversion
SET state = 'pending', attempt = attempt + 1, failures = 0, due_at = :now, lease = NULL, error_class = NULL, error = NULL,
    started_at = NULL, finished_at = NULL
WHERE number = :number AND (state NOT IN ('pending', 'in_progress') OR (:force = 1 AND state = 'in_progress'))

-- name: due
SELECT c.number
FROM conversion c JOIN cloud_version v ON v.number = c.version JOIN cloud_file f ON f.number = v.file
JOIN workspace w ON w.number = f.workspace
WHERE c.state IN ('pending', 'in_progress') AND c.due_at <= :now AND f.deleted_at IS NULL AND w.deleted_at IS NULL
ORDER BY c.due_at, c.number LIMIT :most

-- name: next_due
-- The next instant after :now at which a conversion is due, or a lease ends.
SELECT min(due_at) FROM conversion WHERE state IN ('pending', 'in_progress') AND due_at > :now

-- name: limit_wait
UPDATE conversion SET due_at = :latest WHERE state IN ('pending', 'in_progress') AND due_at > :latest

-- name: lost
-- A claimed conversion with an expired lease.
SELECT attempt, failures FROM conversion WHERE number = :number AND state = 'in_progress' AND due_at <= :now

-- name: claim
UPDATE conversion
SET state = 'in_progress', lease = :lease, due_at = :until, started_at = :now, finished_at = NULL
WHERE number = :number AND state = 'pending' AND due_at <= :now RETURNING failures

-- name: claimed
SELECT v.file_name, v.content_type, v.sha256, v.size, f.id, v.ordinal, f.current_version, f.file_name, f.content_type
FROM conversion c JOIN cloud_version v ON v.number = c.version JOIN cloud_file f ON f.number = v.file
WHERE c.number = :number

-- name: renew_lease
UPDATE conversion SET due_at = :until WHERE number = :number AND lease = :lease

-- name: is_held
-- Whether the lease is still valid and the file still exists.
SELECT 1
FROM conversion c JOIN cloud_version v ON v.number = c.version JOIN cloud_file f ON f.number = v.file
JOIN workspace w ON w.number = f.workspace
WHERE c.number = :number AND c.lease = :lease AND f.deleted_at IS NULL AND w.deleted_at IS NULL

-- name: succeed
UPDATE conversion
SET state = 'succeeded', lease = NULL, error_class = NULL, error = NULL, failures = 0, finished_at = :now
WHERE number = :number AND lease = :lease

-- name: fail
UPDATE conversion
SET state = 'failed', lease = NULL, error_class = :error_class, error = :error, failures = :failures, finished_at = :now
WHERE number = :number AND lease IS NOT DISTINCT FROM :lease

-- name: postpone
UPDATE conversion
SET state = 'pending', lease = NULL, error_class = :error_class, error = :error, failures = :failures,
    attempt = attempt + 1, due_at = :due_at, finished_at = :now
WHERE number = :number AND lease IS NOT DISTINCT FROM :lease

-- name: release
-- The process could not finish the conversion. The interrupted conversion does not count as a failed attempt.
UPDATE conversion SET state = 'pending', lease = NULL, due_at = :now, started_at = NULL
WHERE number = :number AND lease = :lease

-- name: drop_outputs
DELETE FROM conversion_output WHERE conversion = :number

-- name: insert_output
INSERT INTO conversion_output (conversion, position, name, content_type, sha256, size)
VALUES (:conversion, :position, :name, :content_type, :sha256, :size)

-- name: touch_file
-- The record of a file contains its conversion, so a change of the conversion raises the version of the file.
UPDATE cloud_file SET version = version + 1
WHERE number = (SELECT v.file FROM conversion c JOIN cloud_version v ON v.number = c.version WHERE c.number = :number)

-- name: failures_of
SELECT failures FROM conversion WHERE number = :number AND lease = :lease

-- name: lease_of
SELECT lease FROM conversion WHERE number = :number

-- Parts of the daemon that failed and have not recovered.

-- `since` stays the time of the first failure, until the part recovers.
-- name: failed_part_note
INSERT INTO failed_part (part, sentence, failures, since, retry_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (part) DO UPDATE SET sentence = excluded.sentence, failures = excluded.failures, retry_at = excluded.retry_at

-- name: failed_part_clear
DELETE FROM failed_part WHERE part = ?

-- name: failed_parts_clear
DELETE FROM failed_part

-- name: failed_parts
SELECT part, sentence, failures, since, retry_at FROM failed_part ORDER BY part

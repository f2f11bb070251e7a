-- The blocker of each sink, stored in the table `trouble`; its column `standing` is the status of the lane.

-- name: blocker_note
INSERT INTO trouble (sink, standing, sentence, since, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (sink) DO UPDATE SET standing = excluded.standing, sentence = excluded.sentence, since = excluded.since,
  until = excluded.until

-- name: blocker_clear
DELETE FROM trouble WHERE sink = ?

-- name: blockers
SELECT k.workspace, k.addressed_by, k.name, t.standing, t.sentence, t.since, t.until
FROM trouble t JOIN sink k ON k.id = t.sink

-- The blocker of each sink, stored in the table `blocker`; its column `status` is the status of the lane.

-- name: blocker_note
INSERT INTO blocker (sink, status, sentence, since, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (sink) DO UPDATE SET status = excluded.status, sentence = excluded.sentence, since = excluded.since,
  until = excluded.until

-- name: blocker_clear
DELETE FROM blocker WHERE sink = ?

-- name: blockers
SELECT k.workspace, k.addressed_by, k.name, t.status, t.sentence, t.since, t.until
FROM blocker t JOIN sink k ON k.id = t.sink

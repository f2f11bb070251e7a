-- What is in a sink's way.

-- name: trouble_note
INSERT INTO trouble (sink, standing, sentence, since, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (sink) DO UPDATE SET standing = excluded.standing, sentence = excluded.sentence, since = excluded.since,
  until = excluded.until

-- name: trouble_over
DELETE FROM trouble WHERE sink = ?

-- name: troubles
SELECT k.workspace, k.addressed_by, k.name, t.standing, t.sentence, t.since, t.until
FROM trouble t JOIN sink k ON k.id = t.sink

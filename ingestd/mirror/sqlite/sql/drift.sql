-- Drift checks. The connection of a check has temporary tables. `seen`: content of the service. `held`: segments that were
-- pending when the check began. `finding`: keys that differ. `unnamed`: differing entries that no source has named.

-- This and the next two statements return the last key of the next page of a sink's rows; NULL after the last page.
-- name: gone_until
SELECT max(key) FROM (SELECT key FROM gone WHERE sink = ? AND key > ? ORDER BY key LIMIT ?)

-- name: drift_until
SELECT max(key) FROM (SELECT key FROM drift WHERE sink = ? AND key > ? ORDER BY key LIMIT ?)

-- name: dropped_until
SELECT max(key) FROM (SELECT key FROM dropped WHERE sink = ? AND key > ? ORDER BY key LIMIT ?)

-- name: gone_clear
DELETE FROM gone WHERE sink = :sink AND key > :after AND key <= :until

-- name: gone_part
INSERT OR IGNORE INTO gone (sink, key) SELECT ?, value FROM json_each(?)

-- Records the given keys that were removed from the service.
-- name: gone_acknowledged
INSERT OR IGNORE INTO gone (sink, key)
SELECT sink, key FROM entry WHERE sink = ? AND removed AND segment <= 0 AND key IN (SELECT value FROM json_each(?))

-- name: newest_segment
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'segment'), 0)

-- name: pending_segments
SELECT id FROM segment WHERE sink = ?

-- name: check_seen
CREATE TEMP TABLE seen (key TEXT, value TEXT, data_type TEXT, author TEXT, changed_by TEXT, changed_at TEXT)

-- Created after the last chunk: one sort is many times faster than an insertion of each key in order.
-- name: check_order
CREATE INDEX temp.seen_by_key ON seen (key, value, data_type)

-- name: check_held
CREATE TEMP TABLE held (segment INTEGER PRIMARY KEY)

-- name: check_finding
CREATE TEMP TABLE finding (
  key TEXT PRIMARY KEY, what TEXT, partition INTEGER, segment INTEGER, wanted TEXT, wanted_type TEXT, found TEXT, found_type TEXT,
  changed_by TEXT, changed_at TEXT
) WITHOUT ROWID

-- name: check_unnamed_create
CREATE TEMP TABLE unnamed (key TEXT PRIMARY KEY, value TEXT, data_type TEXT, vanished INTEGER) WITHOUT ROWID

-- name: check_hold
INSERT INTO temp.held (segment) VALUES (?)

-- name: check_holds
SELECT EXISTS (SELECT 1 FROM temp.held)

-- name: check_show
INSERT INTO temp.seen (key, value, data_type, author, changed_by, changed_at) VALUES (?, ?, ?, ?, ?, ?)

-- name: check_entries
SELECT count(*) FROM temp.seen

-- Compares entries that were delivered before the check began and are unchanged since then. Their segment is not newer than
-- `:newest`, and was not pending when the check began.
-- name: check_compare
INSERT OR IGNORE INTO temp.finding (key, what, partition, segment, wanted, wanted_type, found, found_type, changed_by, changed_at)
SELECT e.key, CASE WHEN s.key IS NULL THEN 'removed' ELSE 'changed' END, e.partition, e.segment, e.value, e.data_type,
  s.value, s.data_type, coalesce(s.author, s.changed_by, ''), s.changed_at
FROM entry e LEFT JOIN temp.seen s ON s.key = e.key
WHERE e.sink = :sink AND e.partition <> 0 AND NOT e.removed AND abs(e.segment) <= :newest
  AND abs(e.segment) NOT IN (SELECT segment FROM temp.held)
  AND (s.key IS NULL OR s.value IS NOT e.value OR (s.data_type IS NOT NULL AND s.data_type <> e.data_type))
  AND NOT EXISTS (SELECT 1 FROM rejected r WHERE r.sink = e.sink AND r.key = e.key AND r.subject = 'entry')
  AND NOT EXISTS (SELECT 1 FROM dropped d WHERE d.sink = e.sink AND d.key = e.key AND d.segment = e.segment)

-- name: check_added
INSERT OR IGNORE INTO temp.finding (key, what, partition, segment, wanted, wanted_type, found, found_type, changed_by, changed_at)
SELECT s.key, 'added', 0, 0, NULL, '', s.value, s.data_type, coalesce(s.author, s.changed_by, ''), s.changed_at
FROM temp.seen s
WHERE NOT EXISTS (SELECT 1 FROM entry e WHERE e.sink = :sink AND e.key = s.key)
  AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.sink = :sink AND g.key = s.key)
  AND NOT EXISTS (SELECT 1 FROM rejected r WHERE r.sink = :sink AND r.key = s.key AND r.subject = 'entry')
  AND NOT EXISTS (SELECT 1 FROM dropped d WHERE d.sink = :sink AND d.key = s.key)

-- Pending entries that the service has, with its values.
-- name: check_pending
SELECT e.key, e.segment, e.partition, e.row_hash, s.value, s.data_type, s.changed_at
FROM entry e CROSS JOIN segment g ON g.id = e.segment CROSS JOIN temp.seen s ON s.key = e.key
WHERE e.sink = :sink AND e.partition <> 0 AND NOT e.removed AND e.segment <= :newest ORDER BY e.key

-- name: check_counts
SELECT what, count(*) FROM temp.finding GROUP BY what

-- name: check_findings
SELECT key, what, partition, segment, wanted, wanted_type, found, found_type, changed_by, changed_at FROM temp.finding ORDER BY key

-- Entries that no source has named and that differ: the mirror takes the service's values.
-- name: check_unnamed
INSERT OR IGNORE INTO temp.unnamed (key, value, data_type, vanished)
SELECT e.key, s.value, coalesce(s.data_type, e.data_type), s.key IS NULL
FROM entry e LEFT JOIN temp.seen s ON s.key = e.key
WHERE e.sink = :sink AND e.partition = 0 AND NOT e.removed AND e.segment = 0
  AND (s.key IS NULL OR s.value IS NOT e.value OR (s.data_type IS NOT NULL AND s.data_type <> e.data_type))

-- name: check_unnamed_changed
SELECT value, data_type, key FROM temp.unnamed WHERE NOT vanished

-- name: check_unnamed_vanished
SELECT key FROM temp.unnamed WHERE vanished

-- name: unnamed_follow
UPDATE entry SET value = ?, data_type = ? WHERE sink = ? AND key = ? AND partition = 0 AND segment = 0 AND NOT removed

-- name: unnamed_vanished
DELETE FROM entry WHERE sink = ? AND key = ? AND partition = 0 AND segment = 0 AND NOT removed

-- name: drift_keep
INSERT INTO drift (sink, key, what, partition, segment, wanted, wanted_type, found, found_type, changed_by,
  changed_at, since, checked, reaction)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '')
ON CONFLICT (sink, key) DO UPDATE SET partition = excluded.partition, segment = excluded.segment, wanted = excluded.wanted,
  wanted_type = excluded.wanted_type, found_type = excluded.found_type, changed_by = excluded.changed_by,
  changed_at = excluded.changed_at, checked = excluded.checked, reaction = '',
  since = CASE WHEN what = excluded.what AND found IS excluded.found THEN since ELSE excluded.since END,
  what = excluded.what, found = excluded.found

-- name: drift_over
DELETE FROM drift WHERE sink = :sink AND key > :after AND key <= :until AND checked <> :at

-- name: drift_checked
INSERT INTO drift_check (sink, tried_at, at, entries, added, changed, removed, unexplained, failure)
VALUES (:sink, :at, :at, :entries, :added, :changed, :removed, :unexplained, '')
ON CONFLICT (sink) DO UPDATE SET tried_at = excluded.tried_at, at = excluded.at, entries = excluded.entries,
  added = excluded.added, changed = excluded.changed, removed = excluded.removed, unexplained = excluded.unexplained,
  failure = ''

-- name: drift_failed
INSERT INTO drift_check (sink, tried_at, failure) VALUES (?, ?, ?)
ON CONFLICT (sink) DO UPDATE SET tried_at = excluded.tried_at, failure = excluded.failure

-- name: drift_check_get
SELECT tried_at, at, entries, added, changed, removed, failure, unexplained FROM drift_check WHERE sink = ?

-- name: dropped_forget
DELETE FROM dropped WHERE sink = :sink AND key > :after AND key <= :until
  AND EXISTS (SELECT 1 FROM entry e WHERE e.sink = dropped.sink AND e.key = dropped.key AND e.segment <> dropped.segment)

-- Findings `changed` and `removed` about entries of some pipelines (a JSON list), if the entries are unchanged since the check.
-- name: drift_named
SELECT d.key, d.what, e.value, e.data_type, e.partition, e.row_hash, d.found, d.found_type
FROM drift d JOIN entry e ON e.sink = d.sink AND e.key = d.key AND e.segment = d.segment AND NOT e.removed
JOIN partition p ON p.id = e.partition JOIN pipeline l ON l.id = p.pipeline
WHERE d.sink = ? AND d.what <> 'added' AND d.reaction = '' AND l.name IN (SELECT value FROM json_each(?)) AND d.key > ?
ORDER BY d.key LIMIT ?

-- Findings `added`, unless a source has named the key since the check.
-- name: drift_added
SELECT d.key, d.found, d.found_type FROM drift d
WHERE d.sink = ? AND d.what = 'added' AND d.reaction = '' AND d.key > ?
  AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.sink = d.sink AND e.key = d.key)
ORDER BY d.key LIMIT ?

-- name: drift_set_reaction
UPDATE drift SET reaction = ? WHERE sink = ? AND key IN (SELECT value FROM json_each(?))

-- The mirror adopts the value of the service, which has no run and no record.
-- name: entries_adopt_value
UPDATE entry SET value = ?, data_type = coalesce(?, data_type), run = 0, value_run = NULL, position = NULL
WHERE sink = ? AND key = ?

-- Does the same for an entry that was just acknowledged, so the id of its segment is negative.
-- name: entry_follow
UPDATE entry SET value = ?, data_type = coalesce(?, data_type), run = 0, value_run = NULL, position = NULL
WHERE sink = ? AND key = ? AND segment = -?

-- name: entries_adopt_removal
DELETE FROM entry WHERE sink = ? AND key = ?

-- The sinks that have findings without a reaction, each with the number of keys that differed at the last check.
-- name: drift_open
SELECT k.workspace, k.addressed_by, k.name, c.added + c.changed + c.removed FROM drift_check c CROSS JOIN sink k ON k.id = c.sink
WHERE EXISTS (SELECT 1 FROM drift d INDEXED BY drift_open WHERE d.sink = c.sink AND d.reaction = '')

-- name: drift_page
SELECT d.sink, k.name, k.workspace, d.key, d.what, coalesce(l.name, ''), d.wanted, d.wanted_type, d.found,
  coalesce(d.found_type, ''), d.since, d.reaction, d.changed_by, d.changed_at
FROM drift d JOIN sink k ON k.id = d.sink LEFT JOIN partition p ON p.id = d.partition LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE (d.sink, d.key) > (:sink, :key)
  AND (l.name IN (SELECT value FROM json_each(:names)) OR (d.what = 'added' AND (EXISTS (
    SELECT 1 FROM pipeline m CROSS JOIN partition q ON q.sink = d.sink AND q.pipeline = m.id
    WHERE m.name IN (SELECT value FROM json_each(:names))) OR NOT EXISTS (SELECT 1 FROM partition q WHERE q.sink = d.sink))))
ORDER BY d.sink, d.key LIMIT :limit

-- Findings without a reaction about a key, if its entries were not written since the comparison.
-- name: drift_of_key
SELECT k.name, k.workspace, d.key, d.what, coalesce(l.name, ''), d.wanted, d.wanted_type, d.found, coalesce(d.found_type, ''),
  d.since, d.reaction, d.changed_by, d.changed_at
FROM sink k CROSS JOIN drift d ON d.sink = k.id AND d.key = ? LEFT JOIN entry e ON e.sink = d.sink AND e.key = d.key
LEFT JOIN partition p ON p.id = d.partition LEFT JOIN pipeline l ON l.id = p.pipeline
WHERE d.reaction = '' AND (e.key IS NULL OR e.segment = d.segment)
ORDER BY k.workspace, k.name

-- name: drift_checks
SELECT k.workspace, k.addressed_by, k.name, c.tried_at, c.at, c.entries, c.added, c.changed, c.removed, c.failure, c.unexplained
FROM drift_check c CROSS JOIN sink k ON k.id = c.sink
WHERE EXISTS (SELECT 1 FROM pipeline m CROSS JOIN partition q ON q.sink = c.sink AND q.pipeline = m.id
  WHERE m.name IN (SELECT value FROM json_each(?)))
  OR NOT EXISTS (SELECT 1 FROM partition q WHERE q.sink = c.sink)
ORDER BY k.workspace, k.name

-- Operations on rejections, and drift checks.

-- `id` is never reused, so that the ids of a printed list still refer to the same rejections a day later.
-- `at` and `last_at`: first and last rejection; `times`: number of rejections. `removed`: the entry was to be removed.
-- `retried`: the partition's `retries` when the retry was requested.
ALTER TABLE rejected RENAME TO rejected_before;
CREATE TABLE rejected (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  subject   TEXT NOT NULL,
  partition INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  sink      INTEGER NOT NULL,
  key       TEXT,
  value     TEXT,
  data_type TEXT,
  removed   INTEGER NOT NULL DEFAULT 0,
  position  BLOB,
  row_hash  INTEGER,
  field     TEXT NOT NULL DEFAULT '',
  reason    TEXT NOT NULL,
  status    INTEGER,
  record    TEXT NOT NULL DEFAULT '{}',
  at        REAL NOT NULL,
  last_at   REAL NOT NULL,
  times     INTEGER NOT NULL DEFAULT 1,
  retried   INTEGER
);
INSERT INTO rejected (id, subject, partition, run, sink, key, value, data_type, removed, position, row_hash, field, reason,
  status, record, at, last_at)
SELECT id, subject, partition, run, sink, key, value, data_type, subject = 'entry' AND value IS NULL, position, row_hash,
  field, reason, status, record, at, at
FROM rejected_before;
DROP TABLE rejected_before;
CREATE INDEX rejected_by_partition ON rejected (partition, row_hash, position);
CREATE INDEX rejected_by_key ON rejected (sink, key) WHERE key IS NOT NULL;
CREATE INDEX rejected_by_age ON rejected (last_at);

-- The number of requested retries of records of the partition.
ALTER TABLE partition ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

-- Permanent refusals of an entry, in the words of the service. They remain over retries, until the value of the entry changes.
CREATE TABLE refusal (
  id         INTEGER PRIMARY KEY,
  sink       INTEGER NOT NULL,
  key        TEXT NOT NULL,
  value      TEXT,
  data_type  TEXT NOT NULL,
  at         REAL NOT NULL,
  operation  TEXT NOT NULL,
  status     INTEGER,
  request_id TEXT NOT NULL,
  words      TEXT NOT NULL
);
CREATE INDEX refusal_by_key ON refusal (sink, key);

-- Refused entries with a dropped rejection: the service lacks them, which is not drift while they are unchanged (`segment`; 0 if
-- the entry was to be removed and has no row).
CREATE TABLE dropped (
  sink    INTEGER NOT NULL,
  key     TEXT NOT NULL,
  segment INTEGER NOT NULL,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

-- The number of rejections deleted because of the configured limits, and the last time.
CREATE TABLE bounded (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  forgotten INTEGER NOT NULL,
  at        REAL NOT NULL
);

-- The last drift check of each sink. `failure`: why the last attempt, at `tried_at`, was incomplete.
CREATE TABLE drift_check (
  sink     INTEGER PRIMARY KEY REFERENCES sink (id),
  tried_at REAL NOT NULL,
  at       REAL,
  entries  INTEGER NOT NULL DEFAULT 0,
  added    INTEGER NOT NULL DEFAULT 0,
  changed  INTEGER NOT NULL DEFAULT 0,
  removed  INTEGER NOT NULL DEFAULT 0,
  failure  TEXT NOT NULL DEFAULT ''
);

-- The findings of the last drift check. `segment`: that of the compared entry; a different one shows that the entry was written
-- since. `answer`: the reaction to the finding. `checked`: the time of the last check that found it.
CREATE TABLE drift (
  sink        INTEGER NOT NULL,
  key         TEXT NOT NULL,
  what        TEXT NOT NULL,
  partition   INTEGER NOT NULL,
  segment     INTEGER NOT NULL,
  wanted      TEXT,
  wanted_type TEXT NOT NULL,
  found       TEXT,
  found_type  TEXT,
  since       REAL NOT NULL,
  checked     REAL NOT NULL,
  answer      TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

-- Keys that the daemon removed during a drift check of their sink: the check may still have read them.
CREATE TABLE gone (
  sink INTEGER NOT NULL,
  key  TEXT NOT NULL,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

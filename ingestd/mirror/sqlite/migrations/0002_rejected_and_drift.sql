-- What is rejected can be worked with, and a sink that was read back can be compared.

-- `id` is never used again, so that a list that somebody looks at names the same rejections a day later.
-- `at` is when it was first parked, `last_at` when last, `times` how often it was judged since.
-- `removed`: the entry was to be removed. `retried`: the partition's `retries` when it was asked to be mapped again.
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

-- Counts how often records of the partition were asked to be mapped again.
ALTER TABLE partition ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

-- Every time the service refused an entry for good, in its own words; kept over retries, until the entry is something else.
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

-- Refused entries that somebody dropped: the service is known not to hold them, which is no drift while they are the same
-- (`segment`; 0 where the entry was to be removed and has no row any more).
CREATE TABLE dropped (
  sink    INTEGER NOT NULL,
  key     TEXT NOT NULL,
  segment INTEGER NOT NULL,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

-- How many rejections were forgotten because the configuration bounds them, and when last.
CREATE TABLE bounded (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  forgotten INTEGER NOT NULL,
  at        REAL NOT NULL
);

-- The last reading back of each sink. `failure`: why the last try, at `tried_at`, did not come to its end.
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

-- What the last reading back found to differ. `segment`: of the entry when it was compared; one that has another by now has
-- been written since. `answer`: what was done about it. `checked`: the time of the check that found it last.
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

-- Keys that we removed while their sink was being read back: the reading may still have met them.
CREATE TABLE gone (
  sink INTEGER NOT NULL,
  key  TEXT NOT NULL,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

-- The mirror: what each sink should hold, and what it is known to hold.

CREATE TABLE sink (
  id           INTEGER PRIMARY KEY,
  workspace    TEXT NOT NULL,
  addressed_by TEXT NOT NULL,
  name         TEXT NOT NULL,
  workspace_id TEXT NOT NULL DEFAULT '',
  sink_id      TEXT NOT NULL DEFAULT '',
  adopted      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (workspace, addressed_by, name)
);

-- `changes` counts commits that changed an entry: a partition's snapshot can be relied on only while nobody else of the
-- pipeline has changed entries since it was taken. `active`: the configuration still names the pipeline.
CREATE TABLE pipeline (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  active  INTEGER NOT NULL DEFAULT 1,
  changes INTEGER NOT NULL DEFAULT 0
);

-- `cursor` is JSON. `awaiting`: read to its end, the connector has not yet been told that all of it is settled.
CREATE TABLE partition (
  id            INTEGER PRIMARY KEY,
  pipeline      INTEGER NOT NULL REFERENCES pipeline (id),
  sink          INTEGER NOT NULL REFERENCES sink (id),
  name          TEXT NOT NULL,
  digest        TEXT NOT NULL,
  cursor        TEXT,
  valid_through INTEGER NOT NULL DEFAULT -1,
  repeats       INTEGER NOT NULL DEFAULT 0,
  awaiting      INTEGER NOT NULL DEFAULT 0,
  last_run      INTEGER,
  UNIQUE (pipeline, name)
);
CREATE INDEX partition_by_run ON partition (pipeline, last_run);
CREATE INDEX partition_awaiting ON partition (pipeline) WHERE awaiting;

-- The row hashes of a partition's last whole reading: sorted little-endian unsigned 64-bit integers, in pieces.
CREATE TABLE snapshot (
  partition INTEGER NOT NULL REFERENCES partition (id),
  piece     INTEGER NOT NULL,
  hashes    BLOB NOT NULL,
  PRIMARY KEY (partition, piece)
) WITHOUT ROWID;

CREATE TABLE run (
  id        INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL REFERENCES partition (id),
  started   REAL NOT NULL,
  ended     REAL,
  records   INTEGER NOT NULL DEFAULT 0,
  created   INTEGER NOT NULL DEFAULT 0,
  updated   INTEGER NOT NULL DEFAULT 0,
  unchanged INTEGER NOT NULL DEFAULT 0,
  removed   INTEGER NOT NULL DEFAULT 0,
  rejected  INTEGER NOT NULL DEFAULT 0,
  facts     TEXT NOT NULL DEFAULT '{}',
  failure   TEXT NOT NULL DEFAULT ''
);
CREATE INDEX run_by_partition ON run (partition, id);

-- Pending entries, at most one request's worth of one sink and one kind; settled = the row is gone.
-- `over`: JSON list of the segments whose older values this one replaces; while one of them is out, this one waits.
-- `live` counts the entries that still point here; `body` holds all `items`, as the service takes them.
CREATE TABLE segment (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  sink      INTEGER NOT NULL REFERENCES sink (id),
  partition INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  items     INTEGER NOT NULL,
  live      INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  over      TEXT NOT NULL DEFAULT '[]',
  body      BLOB NOT NULL
);
CREATE INDEX segment_by_sink ON segment (sink, id);
CREATE INDEX segment_by_partition ON segment (partition);

-- A partition that named an equal value already pending for another partition is settled no earlier than that one.
CREATE TABLE wait (
  partition INTEGER NOT NULL REFERENCES partition (id),
  segment   INTEGER NOT NULL,
  PRIMARY KEY (partition, segment)
) WITHOUT ROWID;

-- `segment` of 0, or of a segment that is gone: delivered (or parked, see `rejected`).
-- `run`, `position`: which reading gave the value its present text, and from where. `row_hash`: the record that stands
-- behind the entry now. `partition` 0: adopted from the service, no source has named it.
CREATE TABLE entry (
  sink      INTEGER NOT NULL,
  key       TEXT NOT NULL,
  value     TEXT,
  data_type TEXT NOT NULL,
  segment   INTEGER NOT NULL,
  removed   INTEGER NOT NULL DEFAULT 0,
  partition INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  row_hash  INTEGER NOT NULL,
  position  BLOB,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

-- Entries of a reading in which records repeat keys: the last one is known only at the end.
CREATE TABLE staging (
  run       INTEGER NOT NULL,
  key       TEXT NOT NULL,
  value     TEXT,
  data_type TEXT NOT NULL,
  row_hash  INTEGER NOT NULL,
  position  BLOB,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;

-- What is parked, with its reason. `subject`: a record of the source, an entry refused by the service or claimed by
-- another pipeline, or a partition that could not be read at all.
CREATE TABLE rejected (
  id        INTEGER PRIMARY KEY,
  subject   TEXT NOT NULL,
  partition INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  sink      INTEGER NOT NULL,
  key       TEXT,
  value     TEXT,
  data_type TEXT,
  position  BLOB,
  row_hash  INTEGER,
  field     TEXT NOT NULL DEFAULT '',
  reason    TEXT NOT NULL,
  status    INTEGER,
  record    TEXT NOT NULL DEFAULT '{}',
  at        REAL NOT NULL
);
CREATE INDEX rejected_by_partition ON rejected (partition);
CREATE INDEX rejected_by_key ON rejected (sink, key) WHERE key IS NOT NULL;

CREATE TABLE attempt (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  sink         INTEGER NOT NULL,
  at           REAL NOT NULL,
  operation    TEXT NOT NULL,
  items        INTEGER NOT NULL,
  status       INTEGER,
  milliseconds REAL NOT NULL,
  outcome      TEXT NOT NULL,
  sentence     TEXT NOT NULL
);
CREATE INDEX attempt_by_sink ON attempt (sink, id);

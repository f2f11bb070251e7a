-- The mirror: the desired and the confirmed content of each sink.

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

-- `changes` counts commits that changed an entry: the snapshot of a partition is reliable only if no other partition of the
-- pipeline has changed entries since. `active`: the pipeline is configured.
CREATE TABLE pipeline (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  active  INTEGER NOT NULL DEFAULT 1,
  changes INTEGER NOT NULL DEFAULT 0
);

-- `cursor` is JSON. `awaiting`: the partition was read to its end, and its connector has not been notified yet.
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

-- Pending entries of one sink and one kind, at most one request. An acknowledged segment is deleted.
-- `over`: JSON list of the segments with older values of these entries; this segment waits while one of them is claimed.
-- `live`: number of entries that still refer to the segment; `body`: all `items`, encoded for the request.
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

-- A partition named a value that is already pending for another partition: it is acknowledged only after that segment.
CREATE TABLE wait (
  partition INTEGER NOT NULL REFERENCES partition (id),
  segment   INTEGER NOT NULL,
  PRIMARY KEY (partition, segment)
) WITHOUT ROWID;

-- `segment` is 0 or has no row: the entry is delivered (or rejected, see `rejected`).
-- `run`, `position`: the reading and the location of the present value. `row_hash`: the record that now produces the entry.
-- `partition` 0: adopted from the service, no source has named it.
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

-- Rejections. `subject`: a record of the source, an entry that the service refused, a conflict with another pipeline, or a
-- partition that could not be read.
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

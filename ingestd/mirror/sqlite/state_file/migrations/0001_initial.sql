-- The mirror: the desired and the confirmed content of each sink. Instants are seconds since the epoch.

CREATE TABLE sink (
  id           INTEGER PRIMARY KEY,
  workspace    TEXT NOT NULL,
  addressed_by TEXT NOT NULL,
  name         TEXT NOT NULL,
  workspace_id TEXT NOT NULL DEFAULT '',
  sink_id      TEXT NOT NULL DEFAULT '',
  adopted      INTEGER NOT NULL DEFAULT 0,
  -- The sum of `live` over the sink's segments, maintained by triggers, because every wake-up of the delivery reads it.
  pending      INTEGER NOT NULL DEFAULT 0,
  -- When the sink was last adopted.
  adopted_at   REAL,
  -- 1: an earlier state file wrote the sink.
  earlier      INTEGER NOT NULL DEFAULT 0,
  -- 1: the service had entries at the first adoption. Each first reading of a partition is then compared with them.
  found        INTEGER NOT NULL DEFAULT 0,
  UNIQUE (workspace, addressed_by, name)
);

CREATE TABLE pipeline (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  -- 1: the pipeline is configured.
  active  INTEGER NOT NULL DEFAULT 1,
  -- The number of commits that changed an entry. The snapshot of a partition is reliable only while no other partition of the
  -- pipeline changes an entry.
  changes INTEGER NOT NULL DEFAULT 0,
  -- Digest of the source and the sink of the pipeline, which identifies a renamed pipeline.
  source  TEXT,
  -- 1: all partitions of the last complete pass are snapshots with `deletes: remove`.
  whole   INTEGER NOT NULL DEFAULT 0,
  -- When the first complete pass after the adoption of the sink began; NULL: there was none.
  read_at REAL,
  -- When and by whom the pipeline was paused; NULL: it is not paused. The segments of a paused pipeline are not claimed.
  paused_at REAL,
  paused_by TEXT
);
CREATE INDEX pipeline_paused ON pipeline (id) WHERE paused_at IS NOT NULL;

CREATE TABLE partition (
  id              INTEGER PRIMARY KEY,
  pipeline        INTEGER NOT NULL REFERENCES pipeline (id),
  sink            INTEGER NOT NULL REFERENCES sink (id),
  name            TEXT NOT NULL,
  digest          TEXT NOT NULL,
  -- JSON.
  cursor          TEXT,
  -- The last value of `pipeline.changes` for which the row hashes in `snapshot` are valid. Negative: they are not valid.
  -- -2: the source has had other content since the row hashes were stored.
  valid_through   INTEGER NOT NULL DEFAULT -1,
  repeats         INTEGER NOT NULL DEFAULT 0,
  -- 1: the partition was read to its end, and its connector has not been notified yet.
  awaiting        INTEGER NOT NULL DEFAULT 0,
  last_run        INTEGER,
  -- The number of requested retries of records of the partition.
  retries         INTEGER NOT NULL DEFAULT 0,
  -- When the source was found to lack the partition; 0: the connector removed it; NULL: the source has it. A partition that is
  -- gone and unreferenced is pruned.
  gone            REAL,
  -- 1: the mapping has changed. Entries with keys that the next whole reading does not name come from the former mapping.
  remapped        INTEGER NOT NULL DEFAULT 0,
  -- 1: the pipeline now has another source, which has not named the partition yet.
  retired         INTEGER NOT NULL DEFAULT 0,
  -- 1: each entry has the position of the only record that produces it. A partial reading may then remove entries by position.
  positions_exact INTEGER NOT NULL DEFAULT 0,
  -- The kind of the partition, as its source listed it last.
  snapshot        INTEGER NOT NULL DEFAULT 1,
  deletes         TEXT NOT NULL DEFAULT 'keep',
  small           INTEGER NOT NULL DEFAULT 0,
  -- 0: the partition is never read from its start again. A retry then maps the records that are stored with their rejections.
  replayable      INTEGER NOT NULL DEFAULT 1,
  -- The highest row number that an incremental partition has read. A reading from the start that ends earlier misses rows.
  last_row        INTEGER NOT NULL DEFAULT 0,
  -- JSON: the guard for the comparison of a reading at the first adoption of the sink; NULL: there is nothing to compare.
  first_guard     TEXT,
  -- When the source first named the partition, and when the connector was last notified that all entries are acknowledged.
  seen_at         REAL,
  acknowledged_at REAL,
  UNIQUE (pipeline, name)
);
CREATE INDEX partition_by_run ON partition (pipeline, last_run);
-- Partitions that are not acknowledged yet, in the order of their runs.
CREATE INDEX partition_awaiting ON partition (pipeline, last_run) WHERE awaiting;
CREATE INDEX partition_by_sink ON partition (sink, pipeline);
CREATE INDEX partition_gone ON partition (gone) WHERE gone IS NOT NULL;

-- The row hashes of a partition's last whole reading, in pieces.
CREATE TABLE snapshot (
  partition INTEGER NOT NULL REFERENCES partition (id),
  piece     INTEGER NOT NULL,
  -- Little-endian unsigned 64-bit integers.
  hashes    BLOB NOT NULL,
  -- In the first piece: the sections of the source to which the row hashes belong, in Arrow format. NULL: not known; the next
  -- reading is then complete.
  sections  BLOB,
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
  valueless INTEGER NOT NULL DEFAULT 0,
  facts     TEXT NOT NULL DEFAULT '{}',
  failure   TEXT NOT NULL DEFAULT '',
  -- 1: the reading found the content that was read before: only such a reading is complete and has neither facts nor records.
  is_repeat INTEGER AS (
    failure = '' AND ended IS NOT NULL AND facts = '{}' AND records + created + updated + unchanged + removed + rejected = 0
  )
);
CREATE INDEX run_by_partition ON run (partition, id);
-- Runs by the hash of their content, to recognise content that was read before.
CREATE INDEX run_by_content ON run (json_extract(facts, '$."file.sha256"'));
-- Runs that have not ended, and runs that changed no entry. There are few of both.
CREATE INDEX run_open ON run (partition) WHERE ended IS NULL;
CREATE INDEX run_idle ON run (partition, id)
  WHERE created = 0 AND updated = 0 AND unchanged = 0 AND removed = 0 AND rejected = 0 AND valueless = 0;
-- Runs with a notice, so that the status finds the notices of all partitions without reading other runs.
CREATE INDEX run_noticed ON run (partition) WHERE json_extract(facts, '$."file.notice"') IS NOT NULL;

-- The id of the run at which the next pruning is due.
CREATE TABLE pruning (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  next_run INTEGER NOT NULL
);
INSERT INTO pruning (id, next_run) VALUES (1, 0);

-- Runs that the guard held or that were rolled back: their entries remain in `staging` until they are approved or discarded.
CREATE TABLE held_run (
  run       INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL UNIQUE REFERENCES partition (id) ON DELETE CASCADE,
  -- held, approved (its entries are being written) or discarded.
  state     TEXT NOT NULL,
  -- When the hold of the partition began.
  since     REAL NOT NULL,
  -- JSON list.
  reasons   TEXT NOT NULL,
  -- Digest of the mapping.
  digest    TEXT NOT NULL,
  -- Digest of the row hashes; empty: a partial reading.
  content   TEXT NOT NULL,
  -- JSON.
  cursor    TEXT NOT NULL,
  deletes   TEXT NOT NULL,
  whole     INTEGER NOT NULL,
  partial   INTEGER NOT NULL,
  remapped  INTEGER NOT NULL,
  -- `mapped`, `retries`: as in `RunState`.
  mapped    INTEGER NOT NULL,
  retries   INTEGER NOT NULL,
  -- `pipeline.changes` at the hold.
  changes   INTEGER NOT NULL,
  created   INTEGER NOT NULL,
  updated   INTEGER NOT NULL,
  removed   INTEGER NOT NULL,
  -- 1: a person rolled the run back, so the same content is not delivered again, even if the guard would permit it.
  rolled_back INTEGER NOT NULL DEFAULT 0
);

-- The rollback that is being written. After a crash or a full disk, the next start, the next rollback or the next decision about a
-- held run completes it.
CREATE TABLE rollback (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  -- JSON list.
  runs        TEXT NOT NULL,
  -- JSON list of pairs: the id and the name of each sink.
  sinks       TEXT NOT NULL,
  -- 1: no former value that ended since the first of the runs was deleted.
  is_complete INTEGER NOT NULL
);

-- The row hashes of a held reading, as in `snapshot`.
CREATE TABLE held_snapshot (
  run    INTEGER NOT NULL,
  piece  INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (run, piece)
) WITHOUT ROWID;

-- Pending entries of one sink and one kind, for at most one request. An acknowledged segment is deleted.
CREATE TABLE segment (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  sink      INTEGER NOT NULL REFERENCES sink (id),
  partition INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  items     INTEGER NOT NULL,
  -- The number of entries that still refer to the segment.
  live      INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  -- JSON list of the segments with older values of these entries; this segment waits while one of them is claimed.
  over      TEXT NOT NULL DEFAULT '[]',
  -- All `items`, encoded for the request.
  body      BLOB NOT NULL,
  -- When the segment was created, for the age of the oldest pending entry.
  queued_at REAL NOT NULL DEFAULT 0,
  -- The run that gave the values; 0: none. `row_steps`: JSON list of the first item's row and the differences; empty: no rows.
  run       INTEGER NOT NULL,
  row_steps BLOB NOT NULL
);
CREATE INDEX segment_by_sink ON segment (sink, id);
CREATE INDEX segment_by_partition ON segment (partition);
CREATE TRIGGER segment_added AFTER INSERT ON segment BEGIN
  UPDATE sink SET pending = pending + NEW.live WHERE id = NEW.sink;
END;
CREATE TRIGGER segment_lost AFTER UPDATE OF live ON segment BEGIN
  UPDATE sink SET pending = pending + NEW.live - OLD.live WHERE id = NEW.sink;
END;
CREATE TRIGGER segment_gone AFTER DELETE ON segment BEGIN
  UPDATE sink SET pending = pending - OLD.live WHERE id = OLD.sink;
END;

-- A sink for its delivery: `pending` does not count the entries of paused pipelines.
CREATE VIEW lane AS
SELECT id, workspace, addressed_by, name, workspace_id, sink_id, adopted, pending - (
  SELECT coalesce(sum(segment.live), 0)
  FROM pipeline CROSS JOIN segment CROSS JOIN partition ON partition.id = segment.partition
  WHERE pipeline.paused_at IS NOT NULL AND segment.sink = sink.id AND partition.pipeline = pipeline.id
) AS pending FROM sink;

-- When a segment was acknowledged, and the request. An entry keeps the id of its segment, negative if the segment was
-- acknowledged in parts.
CREATE TABLE delivered (
  segment   INTEGER PRIMARY KEY,
  at        REAL NOT NULL,
  operation TEXT NOT NULL,
  status    INTEGER
);

-- A partition that named a value which is already pending for another partition. It is acknowledged only after the `segment`.
CREATE TABLE wait (
  partition INTEGER NOT NULL REFERENCES partition (id),
  segment   INTEGER NOT NULL,
  PRIMARY KEY (partition, segment)
) WITHOUT ROWID;
CREATE INDEX wait_by_segment ON wait (segment);

CREATE TABLE entry (
  sink      INTEGER NOT NULL,
  -- In the Unicode form NFC, as the service stores it.
  key       TEXT NOT NULL,
  value     TEXT,
  data_type TEXT NOT NULL,
  -- 0, or an id without a row in `segment`: the entry is delivered, or rejected (see `rejected`).
  segment   INTEGER NOT NULL,
  removed   INTEGER NOT NULL DEFAULT 0,
  -- 0: adopted from the service, no source has named it.
  partition INTEGER NOT NULL,
  -- `run`, `position`: the reading and the location of the present value.
  run       INTEGER NOT NULL,
  -- The record that now produces the entry.
  row_hash  INTEGER NOT NULL,
  position  BLOB,
  -- The value of the last reading, if it was not sent because it is within the dead-band; NULL: it is `value`.
  last_read TEXT,
  -- The run that gave the value, if a later run named the same value again; NULL: `run`.
  value_run INTEGER,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;
-- The index has the value, so that SQLite counts these entries without reading the table.
CREATE INDEX entry_last_read ON entry (partition, last_read) WHERE last_read IS NOT NULL;
-- For partial readings of databases. Only keys of databases are text; row numbers of files are not in the index.
CREATE INDEX entry_by_position ON entry (partition, position) WHERE typeof(position) = 'text';

-- Keys that more than one partition names. `entry` has the value of one partition, and this table has the values of the other partitions.
-- If the owner of an entry no longer names it, it gets one of these values. The columns are as in `entry`.
CREATE TABLE also_named (
  sink      INTEGER NOT NULL,
  key       TEXT NOT NULL,
  partition INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  value     TEXT,
  data_type TEXT NOT NULL,
  row_hash  INTEGER NOT NULL,
  position  BLOB,
  PRIMARY KEY (sink, key, partition)
) WITHOUT ROWID;
CREATE INDEX also_named_by_partition ON also_named (partition, position);

-- Entries of a reading that are written at its end, for the guard or because the last record of a repeated key is known then.
CREATE TABLE staging (
  run       INTEGER NOT NULL,
  key       TEXT NOT NULL,
  value     TEXT,
  data_type TEXT NOT NULL,
  row_hash  INTEGER NOT NULL,
  position  BLOB,
  deadband  TEXT,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;

-- Former values of entries, for `ingestd trace` and `ingestd rollback`. `partition`, `run`, `position`, `value_run`: as in `entry`.
CREATE TABLE former (
  id           INTEGER PRIMARY KEY,
  sink         INTEGER NOT NULL,
  key          TEXT NOT NULL,
  value        TEXT,
  data_type    TEXT NOT NULL,
  -- 0: found in the service.
  partition    INTEGER NOT NULL,
  run          INTEGER NOT NULL,
  position     BLOB,
  -- delivered, rejected by the service, sent (the response was not known), pending or found.
  delivery     TEXT NOT NULL,
  delivered_at REAL,
  -- The entry had the value until this time.
  ended_at     REAL NOT NULL,
  -- The run that ended the value; 0: none. A first delivery may have ended a value of the service.
  ended_by     INTEGER NOT NULL,
  -- replaced, removed, approved (replaced by an approved run), adopted (the service's content is valid), overwritten (found by
  -- a drift check or an adoption) or rolled_back.
  ending       TEXT NOT NULL,
  value_run    INTEGER,
  -- 1: a rollback undid the change that ended the value, so it is no predecessor of the present value.
  undone       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX former_by_key ON former (sink, key);

-- Rejections.
CREATE TABLE rejected (
  -- Never reused, so that the ids of a printed list still refer to the same rejections a day later.
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  -- A record of the source, an entry that the service refused, a conflict with another pipeline, or a partition that could not be
  -- read.
  subject   TEXT NOT NULL,
  partition INTEGER NOT NULL,
  run       INTEGER NOT NULL,
  sink      INTEGER NOT NULL,
  key       TEXT,
  value     TEXT,
  data_type TEXT,
  -- 1: the service refused to remove the entry.
  removed   INTEGER NOT NULL DEFAULT 0,
  position  BLOB,
  row_hash  INTEGER,
  field     TEXT NOT NULL DEFAULT '',
  reason    TEXT NOT NULL,
  status    INTEGER,
  record    TEXT NOT NULL DEFAULT '{}',
  -- The times of the first and the last rejection, and the number of rejections.
  at        REAL NOT NULL,
  last_at   REAL NOT NULL,
  times     INTEGER NOT NULL DEFAULT 1,
  -- The partition's `retries` when the retry was requested.
  retried   INTEGER
);
CREATE INDEX rejected_by_partition ON rejected (partition, row_hash, position);
CREATE INDEX rejected_by_key ON rejected (sink, key) WHERE key IS NOT NULL;
CREATE INDEX rejected_by_age ON rejected (last_at);
-- Rejected partitions, and rejected records with a retry. Both are few among the rejections of a partition.
CREATE INDEX rejected_whole ON rejected (partition) WHERE subject = 'partition';
CREATE INDEX rejected_retried ON rejected (partition, retried) WHERE retried IS NOT NULL;
-- For partial readings, like `entry_by_position`.
CREATE INDEX rejected_by_position ON rejected (partition, position) WHERE typeof(position) = 'text';

-- Permanent refusals of an entry, in the words of the service. A retry keeps them; a change of the entry's value deletes them.
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

-- The blocker of each sink, for `ingestd status`, also while the daemon does not run. `status`: the status of the lane.
CREATE TABLE blocker (
  sink     INTEGER PRIMARY KEY,
  status   TEXT NOT NULL,
  sentence TEXT NOT NULL,
  since    REAL NOT NULL,
  until    REAL NOT NULL
);

-- Parts of the daemon (a source, a lane, a schedule) that failed and wait for their restart, for `ingestd status`.
CREATE TABLE failed_part (
  part     TEXT PRIMARY KEY,
  sentence TEXT NOT NULL,
  failures INTEGER NOT NULL,
  since    REAL NOT NULL,
  retry_at REAL NOT NULL
) WITHOUT ROWID;

-- The last drift check of each sink.
CREATE TABLE drift_check (
  sink        INTEGER PRIMARY KEY REFERENCES sink (id),
  tried_at    REAL NOT NULL,
  at          REAL,
  entries     INTEGER NOT NULL DEFAULT 0,
  added       INTEGER NOT NULL DEFAULT 0,
  changed     INTEGER NOT NULL DEFAULT 0,
  removed     INTEGER NOT NULL DEFAULT 0,
  -- Why the last attempt, at `tried_at`, was incomplete.
  failure     TEXT NOT NULL DEFAULT '',
  -- The number of entries that no source explained at the last comparison.
  unexplained INTEGER NOT NULL DEFAULT 0
);

-- The findings of the last drift check.
CREATE TABLE drift (
  sink        INTEGER NOT NULL,
  key         TEXT NOT NULL,
  what        TEXT NOT NULL,
  partition   INTEGER NOT NULL,
  -- The segment of the compared entry. If the entry now has another segment, it was written after the comparison.
  segment     INTEGER NOT NULL,
  wanted      TEXT,
  wanted_type TEXT NOT NULL,
  found       TEXT,
  found_type  TEXT,
  -- The account that changed the entry in the service, and the time, as the service reports; empty and NULL: not reported.
  changed_by  TEXT NOT NULL DEFAULT '',
  changed_at  REAL,
  since       REAL NOT NULL,
  -- The time of the last check that found the difference.
  checked     REAL NOT NULL,
  -- The reaction to the finding.
  reaction    TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

CREATE INDEX drift_open ON drift (sink) WHERE reaction = '';

-- Keys that the daemon removed during a drift check of their sink. The check may have read the keys before the removal.
CREATE TABLE gone (
  sink INTEGER NOT NULL,
  key  TEXT NOT NULL,
  PRIMARY KEY (sink, key)
) WITHOUT ROWID;

-- The name of this state file; the sequence file contains the same name.
CREATE TABLE identity (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  name TEXT NOT NULL
);

-- Sinks that may have content unknown to this state file, until they are compared and repaired.
CREATE TABLE doubt (
  sink          INTEGER PRIMARY KEY REFERENCES sink (id),
  since         REAL NOT NULL,
  reason        TEXT NOT NULL,
  -- Changes in the service after this time are newer than pending entries of sources that can't be read again; NULL: not known.
  changed_since REAL,
  -- The newest segment of the restored file. Later segments have newer values than the service: sources named them afterwards.
  newest_segment INTEGER
);

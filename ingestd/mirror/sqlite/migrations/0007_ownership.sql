-- Ownership: which entries a configured source explains, and which an earlier pipeline or state file wrote.

-- `source`: digest of the source and the sink of the pipeline, which identifies a renamed pipeline. `whole`: all partitions of
-- the last complete pass are snapshots with `deletes: remove`. `read_at`: when the first complete pass after the adoption of the sink
-- began; NULL: there was none.
ALTER TABLE pipeline ADD COLUMN source TEXT;
ALTER TABLE pipeline ADD COLUMN whole INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN read_at REAL;

-- `remapped`: the mapping has changed; entries with keys that the next whole reading does not name are left over.
-- `retired`: the pipeline now has another source, which has not named the partition yet.
ALTER TABLE partition ADD COLUMN remapped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE partition ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;

-- `adopted_at`: the last adoption of the sink. `earlier`: an earlier state file wrote the sink.
ALTER TABLE sink ADD COLUMN adopted_at REAL;
ALTER TABLE sink ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;

-- The number of unexplained entries at the last comparison.
ALTER TABLE drift_check ADD COLUMN unexplained INTEGER NOT NULL DEFAULT 0;

-- The name of this state file; the sequence file contains the same name. `guarded`: the sequence file was written once.
CREATE TABLE identity (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  name    TEXT NOT NULL,
  guarded INTEGER NOT NULL DEFAULT 0
);

-- Sinks that may have content unknown to this state file, until they are compared and repaired.
CREATE TABLE doubt (
  sink   INTEGER PRIMARY KEY REFERENCES sink (id),
  since  REAL NOT NULL,
  reason TEXT NOT NULL
);

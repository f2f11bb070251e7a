-- Ownership: which entries a source of the configuration explains, and what an earlier pipeline or state file wrote.

-- `source`: the digest of what the pipeline reads and where it writes; a renamed pipeline is known by it. `whole`: every
-- partition of the last complete pass is a snapshot whose vanished rows are removed. `read_at`: when the first complete pass
-- began after the sink was adopted; NULL: there was none yet.
ALTER TABLE pipeline ADD COLUMN source TEXT;
ALTER TABLE pipeline ADD COLUMN whole INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN read_at REAL;

-- `remapped`: the mapping changed; entries under keys that the next whole reading does not name are left over.
-- `retired`: the pipeline has another source now, and that one has not named the partition yet.
ALTER TABLE partition ADD COLUMN remapped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE partition ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;

-- `adopted_at`: when what the sink held was last read into the mirror. `earlier`: a state file before this one wrote the sink.
ALTER TABLE sink ADD COLUMN adopted_at REAL;
ALTER TABLE sink ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;

-- How many entries of the sink no source explained when it was compared.
ALTER TABLE drift_check ADD COLUMN unexplained INTEGER NOT NULL DEFAULT 0;

-- This state file's name; the sequence file beside it holds the same. `guarded`: the sequence file was written once.
CREATE TABLE identity (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  name    TEXT NOT NULL,
  guarded INTEGER NOT NULL DEFAULT 0
);

-- Sinks that may hold what this state file does not know, until they are compared and repaired.
CREATE TABLE doubt (
  sink   INTEGER PRIMARY KEY REFERENCES sink (id),
  since  REAL NOT NULL,
  reason TEXT NOT NULL
);

-- Runs that the guard held: their entries remain in `staging` until they are approved or discarded.

-- `state`: held, approved (its entries are being written) or discarded. `since`: when the hold of the partition began. `reasons`:
-- JSON list. `digest`: that of the mapping. `content`: digest of the row hashes; empty: a partial reading. `cursor`: JSON.
-- `changes`: `pipeline.changes` at the hold. `mapped` and `retries`: as in the run.
CREATE TABLE held_run (
  run       INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL UNIQUE REFERENCES partition (id) ON DELETE CASCADE,
  state     TEXT NOT NULL,
  since     REAL NOT NULL,
  reasons   TEXT NOT NULL,
  digest    TEXT NOT NULL,
  content   TEXT NOT NULL,
  cursor    TEXT NOT NULL,
  deletes   TEXT NOT NULL,
  whole     INTEGER NOT NULL,
  partial   INTEGER NOT NULL,
  remapped  INTEGER NOT NULL,
  mapped    INTEGER NOT NULL,
  retries   INTEGER NOT NULL,
  changes   INTEGER NOT NULL,
  created   INTEGER NOT NULL,
  updated   INTEGER NOT NULL,
  removed   INTEGER NOT NULL
);

-- The row hashes of a held reading, as in `snapshot`.
CREATE TABLE held_snapshot (
  run    INTEGER NOT NULL,
  piece  INTEGER NOT NULL,
  hashes BLOB NOT NULL,
  PRIMARY KEY (run, piece)
) WITHOUT ROWID;

-- Parts of the daemon (a source, a lane, a schedule) that failed and wait for their restart, for `ingestd status`.
CREATE TABLE failed_part (
  part     TEXT PRIMARY KEY,
  sentence TEXT NOT NULL,
  failures INTEGER NOT NULL,
  since    REAL NOT NULL,
  retry_at REAL NOT NULL
) WITHOUT ROWID;

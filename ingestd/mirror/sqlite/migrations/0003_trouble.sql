-- The blocker of each sink, for `ingestd status`, also while the daemon does not run. `standing`: the status of the lane.
CREATE TABLE trouble (
  sink     INTEGER PRIMARY KEY,
  standing TEXT NOT NULL,
  sentence TEXT NOT NULL,
  since    REAL NOT NULL,
  until    REAL NOT NULL
);

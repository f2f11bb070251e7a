-- What is in a sink's way, as its lane sees it: for who asks how things stand, whether the daemon runs or not.
CREATE TABLE trouble (
  sink     INTEGER PRIMARY KEY,
  standing TEXT NOT NULL,
  sentence TEXT NOT NULL,
  since    REAL NOT NULL,
  until    REAL NOT NULL
);

-- Former values of entries, and the times of deliveries, for `ingestd trace`.

-- The entry had this value before `ended_at`. `partition`, `run` and `position` as in `entry`; partition 0: found in the service.
-- `delivery`: delivered, rejected by the service, sent (the response was not known), pending or found. `ending`: replaced,
-- removed, approved (replaced by an approved run), adopted (the service's content is valid) or overwritten (found by a drift
-- check or an adoption). `ended_by`: the run that ended it; 0: none.
CREATE TABLE former (
  id           INTEGER PRIMARY KEY,
  sink         INTEGER NOT NULL,
  key          TEXT NOT NULL,
  value        TEXT,
  data_type    TEXT NOT NULL,
  partition    INTEGER NOT NULL,
  run          INTEGER NOT NULL,
  position     BLOB,
  delivery     TEXT NOT NULL,
  delivered_at REAL,
  ended_at     REAL NOT NULL,
  ended_by     INTEGER NOT NULL,
  ending       TEXT NOT NULL
);
CREATE INDEX former_by_key ON former (sink, key);

-- When a segment was acknowledged, and the request. An entry keeps the id of its segment, negative if the segment was acknowledged
-- in parts.
CREATE TABLE delivered (
  segment   INTEGER PRIMARY KEY,
  at        REAL NOT NULL,
  operation TEXT NOT NULL,
  status    INTEGER
);

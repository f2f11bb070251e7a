-- Keys that more than one partition names. `entry` has the value of one partition, and here are those of the others: what the
-- entry becomes if its partition no longer names it. The columns are those of `entry`.
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

-- A conflict is a name of another pipeline. Its partition is read again, because the row hash may be of an earlier record.
INSERT INTO also_named (sink, key, partition, run, value, data_type, row_hash, position)
SELECT sink, key, partition, run, value, data_type, coalesce(row_hash, 0), position FROM rejected WHERE subject = 'conflict'
ON CONFLICT DO NOTHING;

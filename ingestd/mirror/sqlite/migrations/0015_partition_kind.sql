-- The kind of a partition, as its source listed it last. A partition that is not `replayable` is never read from its start again:
-- a retry maps the records that are stored with their rejections.
ALTER TABLE partition ADD COLUMN snapshot INTEGER NOT NULL DEFAULT 1;
ALTER TABLE partition ADD COLUMN deletes TEXT NOT NULL DEFAULT 'keep';
ALTER TABLE partition ADD COLUMN small INTEGER NOT NULL DEFAULT 0;
ALTER TABLE partition ADD COLUMN replayable INTEGER NOT NULL DEFAULT 1;
-- The highest row number that an incremental partition has read: a reading from the start that ends before it misses rows.
ALTER TABLE partition ADD COLUMN last_row INTEGER NOT NULL DEFAULT 0;

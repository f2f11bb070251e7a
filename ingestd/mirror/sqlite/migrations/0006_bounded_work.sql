-- Indexes and counters: the statements of a run, a batch or an acknowledgement read only the rows that they concern.

-- `pending`: the sum of `live` over the sink's segments, maintained by triggers, because every wake-up of the delivery reads it.
ALTER TABLE sink ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
UPDATE sink SET pending = coalesce((SELECT sum(live) FROM segment WHERE segment.sink = sink.id), 0);
CREATE TRIGGER segment_added AFTER INSERT ON segment BEGIN
  UPDATE sink SET pending = pending + NEW.live WHERE id = NEW.sink;
END;
CREATE TRIGGER segment_lost AFTER UPDATE OF live ON segment BEGIN
  UPDATE sink SET pending = pending + NEW.live - OLD.live WHERE id = NEW.sink;
END;
CREATE TRIGGER segment_gone AFTER DELETE ON segment BEGIN
  UPDATE sink SET pending = pending - OLD.live WHERE id = OLD.sink;
END;

-- Partitions that are not acknowledged yet, in the order of their runs.
DROP INDEX partition_awaiting;
CREATE INDEX partition_awaiting ON partition (pipeline, last_run) WHERE awaiting;
CREATE INDEX partition_by_sink ON partition (sink, pipeline);
CREATE INDEX wait_by_segment ON wait (segment);

-- Runs that have not ended, and runs that changed nothing. Both are few.
CREATE INDEX run_open ON run (partition) WHERE ended IS NULL;
CREATE INDEX run_idle ON run (partition, id)
  WHERE created = 0 AND updated = 0 AND unchanged = 0 AND removed = 0 AND rejected = 0;

-- Rejected partitions, and rejected records with a retry. Both are few among the rejections of a partition.
CREATE INDEX rejected_whole ON rejected (partition) WHERE subject = 'partition';
CREATE INDEX rejected_retried ON rejected (partition, retried) WHERE retried IS NOT NULL;

-- `gone`: when the source was found to lack the partition, in seconds since the epoch; 0: the connector removed it; NULL: the
-- source has it. A partition that is gone and unreferenced is pruned.
ALTER TABLE partition ADD COLUMN gone REAL;
CREATE INDEX partition_gone ON partition (gone) WHERE gone IS NOT NULL;

-- The id of the run at which the next pruning is due.
CREATE TABLE pruning (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  next_run INTEGER NOT NULL
);
INSERT INTO pruning (id, next_run) VALUES (1, 0);

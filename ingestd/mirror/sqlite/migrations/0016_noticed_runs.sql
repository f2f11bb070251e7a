-- The runs with a notice, so that the status finds those of all partitions and reads no other run.
CREATE INDEX run_noticed ON run (partition) WHERE json_extract(facts, '$."file.notice"') IS NOT NULL;

-- Readings by the hash of what was read: the same content dropped twice is recognised.
CREATE INDEX run_by_content ON run (json_extract(facts, '$."file.sha256"'));

-- Runs by the hash of their content, to recognise content that was read before.
CREATE INDEX run_by_content ON run (json_extract(facts, '$."file.sha256"'));

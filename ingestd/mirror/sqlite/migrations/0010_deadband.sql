-- The dead-band: a value that differs little from the one that was sent is not sent.

-- `last_read`: the value of the last reading, if it was not sent because it is within the dead-band; NULL: it is `value`.
ALTER TABLE entry ADD COLUMN last_read TEXT;
ALTER TABLE staging ADD COLUMN deadband TEXT;

CREATE INDEX entry_last_read ON entry (partition) WHERE last_read IS NOT NULL;

-- When a segment was created, in seconds since the epoch: the age of what waits for delivery.

ALTER TABLE segment ADD COLUMN queued_at REAL NOT NULL DEFAULT 0;
UPDATE segment SET queued_at = (julianday('now') - 2440587.5) * 86400.0;

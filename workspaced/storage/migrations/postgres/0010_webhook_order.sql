-- As SQLite's.
ALTER TABLE webhook ADD COLUMN in_order smallint NOT NULL DEFAULT 0;
ALTER TABLE webhook ADD COLUMN batch_entries smallint NOT NULL DEFAULT 0;

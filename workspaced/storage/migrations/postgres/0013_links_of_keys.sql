-- As SQLite's.
ALTER TABLE cloud_upload ADD COLUMN key_id text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE cloud_upload ADD COLUMN secret bytea NOT NULL DEFAULT '';

-- The API key that requested an upload link, and the digest of its secret: the link ends with that key or that secret of it.
ALTER TABLE cloud_upload ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE cloud_upload ADD COLUMN secret BLOB NOT NULL DEFAULT x'';

-- The sections of the source whose row hashes are in the pieces, in Arrow format, in the first piece of a partition. NULL: not known;
-- the next reading is then complete. The row hashes are no longer sorted.

ALTER TABLE snapshot ADD COLUMN sections BLOB;

-- Entries by the position of their record, for partial readings of databases.

-- 1: each entry has the position of the only record that produces it. A partial reading may then remove entries by position.
ALTER TABLE partition ADD COLUMN positions_exact INTEGER NOT NULL DEFAULT 0;

-- Only keys of databases are text; row numbers of files are not in the indexes.
CREATE INDEX entry_by_position ON entry (partition, position) WHERE typeof(position) = 'text';
CREATE INDEX rejected_by_position ON rejected (partition, position) WHERE typeof(position) = 'text';

-- Former values of entries. A row has the value before a change; the value after it is in the next row of the key, or in the
-- entry. Values are therefore stored once. No foreign key: the removal of a sink deletes its changes first, and a check for
-- each row would slow bulk writes.
CREATE TABLE entry_change (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,   -- never reused, because data_sink.history_after names one
    sink          INTEGER NOT NULL,
    key           TEXT NOT NULL,
    at            INTEGER NOT NULL,                    -- never decreases for a key
    old_value     TEXT,
    old_data_type TEXT,                                -- NULL: the key had no entry
    known_from    INTEGER,                             -- of the oldest row, after older ones were dropped: old_value was set then
    actor         TEXT NOT NULL,
    key_id        TEXT NOT NULL,
    client_id     TEXT NOT NULL,
    request_id    TEXT NOT NULL,
    operation     TEXT NOT NULL
);
CREATE INDEX entry_change_by_key ON entry_change (sink, key, at);
CREATE INDEX entry_change_by_time ON entry_change (sink, at);
CREATE INDEX entry_change_cut ON entry_change (sink, known_from) WHERE known_from IS NOT NULL;

-- How many changes of each entry are kept, and for how many days. NULL: the default of the service; 0 changes: no history.
ALTER TABLE data_sink ADD COLUMN history_changes INTEGER;
ALTER TABLE data_sink ADD COLUMN history_days INTEGER;
-- The instant from which every change of the sink is known; NULL: none is recorded. Rows up to history_after do not count.
ALTER TABLE data_sink ADD COLUMN history_from INTEGER;
ALTER TABLE data_sink ADD COLUMN history_after INTEGER NOT NULL DEFAULT 0;

-- The last change for which older changes of its entry were dropped.
ALTER TABLE data_sink_entry_numbers ADD COLUMN changes_pruned_to INTEGER NOT NULL DEFAULT 0;

-- As SQLite's.
CREATE TABLE entry_change (
    number        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sink          bigint NOT NULL,
    key           text COLLATE "C" NOT NULL,
    at            bigint NOT NULL,
    old_value     text COLLATE "C",
    old_data_type text COLLATE "C",
    known_from    bigint,
    actor         text COLLATE "C" NOT NULL,
    key_id        text COLLATE "C" NOT NULL,
    client_id     text COLLATE "C" NOT NULL,
    request_id    text COLLATE "C" NOT NULL,
    operation     text COLLATE "C" NOT NULL
);
CREATE INDEX entry_change_by_key ON entry_change (sink, key, at, number);
CREATE INDEX entry_change_by_time ON entry_change (sink, at, number);
CREATE INDEX entry_change_cut ON entry_change (sink, known_from) WHERE known_from IS NOT NULL;

ALTER TABLE data_sink ADD COLUMN history_changes bigint;
ALTER TABLE data_sink ADD COLUMN history_days bigint;
ALTER TABLE data_sink ADD COLUMN history_from bigint;
ALTER TABLE data_sink ADD COLUMN history_after bigint NOT NULL DEFAULT 0;
ALTER TABLE data_sink_entry_numbers ADD COLUMN changes_pruned_to bigint NOT NULL DEFAULT 0;

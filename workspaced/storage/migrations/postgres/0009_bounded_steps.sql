-- As SQLite's. NULLS FIRST is another order than the primary key's to the planner, though no number is NULL: else it could take
-- the primary key for a page of one sink, and read the entries of all sinks to find those of the one.
CREATE INDEX data_sink_entry_by_sink ON data_sink_entry ((sink + 0), number NULLS FIRST);
DROP INDEX delivery_by_webhook;
CREATE INDEX delivery_by_webhook ON delivery (webhook, number NULLS FIRST);

ALTER TABLE data_sink ADD COLUMN removed_to bigint;
CREATE INDEX data_sink_deleted ON data_sink (workspace, number) WHERE removed_to IS NOT NULL;

ALTER TABLE webhook ADD COLUMN removed_to bigint;
CREATE INDEX webhook_deleted ON webhook (number) WHERE removed_to IS NOT NULL;

ALTER TABLE event ADD COLUMN resource text COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE event_fan_out (
    number      bigint PRIMARY KEY,
    webhook     bigint NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    types       text COLLATE "C" NOT NULL,
    first_event bigint NOT NULL,
    last_event  bigint NOT NULL
);
CREATE INDEX event_fan_out_by_webhook ON event_fan_out (webhook);

CREATE INDEX api_key_by_principal ON api_key (principal);
CREATE INDEX cloud_file_empty ON cloud_file (created_at) WHERE current_version = 0;

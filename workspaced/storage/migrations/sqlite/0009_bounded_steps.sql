-- What bounds the work of one request.

-- A sink's entries in the order of their creation. SQLite appends the rowid, which is the number, to every index. Numbers
-- only grow and never change, so an insertion appends to the index and an update leaves it alone. An expression, so that only
-- statements that say it take this index: of one that names a sink and a key, PostgreSQL would think that either index does.
CREATE INDEX data_sink_entry_by_sink ON data_sink_entry (sink + 0);

-- NULL: the sink is there. Else it is deleted: no request finds it, its id is free, and its entries up to this number are
-- removed already. The others go in steps.
ALTER TABLE data_sink ADD COLUMN removed_to INTEGER;
CREATE INDEX data_sink_deleted ON data_sink (workspace, number) WHERE removed_to IS NOT NULL;

-- As of a sink; what is removed in steps are its deliveries.
ALTER TABLE webhook ADD COLUMN removed_to INTEGER;
CREATE INDEX webhook_deleted ON webhook (number) WHERE removed_to IS NOT NULL;

-- Type and id of what an event is about, as its deliveries have it.
ALTER TABLE event ADD COLUMN resource TEXT NOT NULL DEFAULT '';

-- Events that were committed for a webhook and have no delivery yet: those with numbers from first_event to last_event and
-- of these types. The rows of a webhook become deliveries in the order of their numbers.
CREATE TABLE event_fan_out (
    number      INTEGER PRIMARY KEY,
    webhook     INTEGER NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    types       TEXT NOT NULL,              -- a JSON list
    first_event INTEGER NOT NULL,
    last_event  INTEGER NOT NULL
);
CREATE INDEX event_fan_out_by_webhook ON event_fan_out (webhook);

-- Made anew: of two indexes that serve a statement alike, SQLite takes the one that was made last, and delivery_by_webhook
-- holds every delivery of thirty days.
DROP INDEX delivery_pending;
DROP INDEX delivery_pending_resource;
DROP INDEX delivery_failed;
DROP INDEX delivery_leased;
CREATE INDEX delivery_pending ON delivery (webhook, number) WHERE status = 'pending';
CREATE INDEX delivery_pending_resource ON delivery (webhook, resource, number) WHERE status = 'pending';
CREATE INDEX delivery_failed ON delivery (webhook, due_at) WHERE status = 'failed';
CREATE INDEX delivery_leased ON delivery (webhook) WHERE lease IS NOT NULL;

-- Each event looks up the keys of those who may get it.
CREATE INDEX api_key_by_principal ON api_key (principal);
-- Files that were announced and never came.
CREATE INDEX cloud_file_empty ON cloud_file (created_at) WHERE current_version = 0;

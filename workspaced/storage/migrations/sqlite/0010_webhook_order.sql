-- How a webhook is sent its events: all of them in order, one at a time; and events of entries many to a request.
ALTER TABLE webhook ADD COLUMN in_order INTEGER NOT NULL DEFAULT 0;
ALTER TABLE webhook ADD COLUMN batch_entries INTEGER NOT NULL DEFAULT 0;

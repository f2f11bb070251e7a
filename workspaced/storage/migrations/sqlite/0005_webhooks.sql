-- Receivers, the events that wait for them, and what became of each delivery. Instants are milliseconds since 1970.

CREATE TABLE webhook (
    number            INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    owner             TEXT NOT NULL,              -- a principal
    label             TEXT NOT NULL,
    url               TEXT NOT NULL,
    headers           BLOB NOT NULL,              -- a sealed JSON list
    data_events       TEXT NOT NULL,              -- a JSON list
    oauth             BLOB NOT NULL,              -- a sealed JSON object
    workspace_ids     TEXT NOT NULL,              -- a JSON list; empty: all that the owner may read
    ignore_client_ids TEXT NOT NULL,              -- a JSON list
    coalesce_updates  INTEGER NOT NULL,
    enabled           INTEGER NOT NULL,
    disabled_reason   TEXT NOT NULL,
    failing_since     INTEGER,                    -- NULL: the last attempt succeeded, or there was none
    failures          INTEGER NOT NULL DEFAULT 0, -- attempts since then
    version           INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    created_by        TEXT NOT NULL,
    updated_by        TEXT NOT NULL
);
CREATE INDEX webhook_by_owner ON webhook (owner);
-- What every write looks through; nearly always empty.
CREATE INDEX webhook_enabled ON webhook (number) WHERE enabled = 1;

-- More than one secret only while rotations overlap. The newest has the highest number.
CREATE TABLE webhook_secret (
    number      INTEGER PRIMARY KEY,
    webhook     INTEGER NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    secret      BLOB NOT NULL,                    -- sealed
    valid_until INTEGER                           -- NULL: the one that records show
);
CREATE INDEX webhook_secret_by_webhook ON webhook_secret (webhook, number);

-- One row: the last number given to an event or a delivery.
CREATE TABLE event_numbers (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    last_number INTEGER NOT NULL
);
INSERT INTO event_numbers VALUES (1, 0);

CREATE TABLE event_sequence (
    workspace_id  TEXT NOT NULL PRIMARY KEY,
    last_sequence INTEGER NOT NULL
) WITHOUT ROWID;

-- An event is here only if somebody is to get it. ``body`` is what is sent, byte for byte.
CREATE TABLE event (
    number       INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    type         TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    sequence     INTEGER NOT NULL,
    body         BLOB NOT NULL,
    created_at   INTEGER NOT NULL
);
CREATE INDEX event_by_age ON event (created_at);

-- status: pending (not tried since it was queued), failed (to be tried again), succeeded, dead (given up).
-- A lease is a name in ``lease`` and its end in ``due_at``: one that has run out makes the delivery due again by itself.
CREATE TABLE delivery (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    webhook     INTEGER NOT NULL REFERENCES webhook (number) ON DELETE CASCADE,
    event       INTEGER NOT NULL REFERENCES event (number) ON DELETE CASCADE,
    resource    TEXT NOT NULL,                    -- type and id of what the event is about
    status      TEXT NOT NULL,
    tries       INTEGER NOT NULL DEFAULT 0,       -- since it was queued; redelivery begins anew
    attempts    INTEGER NOT NULL DEFAULT 0,       -- ever
    due_at      INTEGER NOT NULL,
    lease       TEXT,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
);
CREATE INDEX delivery_pending ON delivery (webhook, number) WHERE status = 'pending';
CREATE INDEX delivery_pending_resource ON delivery (webhook, resource, number) WHERE status = 'pending';
CREATE INDEX delivery_failed ON delivery (webhook, due_at) WHERE status = 'failed';
CREATE INDEX delivery_leased ON delivery (webhook) WHERE lease IS NOT NULL;
CREATE INDEX delivery_by_webhook ON delivery (webhook, number);
CREATE INDEX delivery_by_event ON delivery (event);

CREATE TABLE delivery_attempt (
    delivery     INTEGER NOT NULL REFERENCES delivery (number) ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    milliseconds INTEGER NOT NULL,
    status_code  INTEGER,                         -- NULL: no answer
    error        TEXT,
    answer       TEXT NOT NULL,                   -- the beginning of what came back
    PRIMARY KEY (delivery, ordinal)
) WITHOUT ROWID;

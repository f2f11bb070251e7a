-- As SQLite's.
CREATE TABLE page_session (
    token      bytea NOT NULL PRIMARY KEY,
    key_id     text COLLATE "C" NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    secret     bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX page_session_by_key ON page_session (key_id);
CREATE INDEX page_session_by_end ON page_session (expires_at);

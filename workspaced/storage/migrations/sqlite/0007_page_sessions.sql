-- Who is signed in to the pages. Kept are digests: of the cookie's token, and of the API key that stands behind it, so that
-- a session ends with that key or that secret of it.
CREATE TABLE page_session (
    token      BLOB NOT NULL PRIMARY KEY,
    key_id     TEXT NOT NULL REFERENCES api_key (id) ON DELETE CASCADE,
    secret     BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX page_session_by_key ON page_session (key_id);
CREATE INDEX page_session_by_end ON page_session (expires_at);

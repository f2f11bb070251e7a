-- Who does a job that only one process at a time should do, and until when it is his (milliseconds since 1970).
CREATE TABLE job_lease (
    job     TEXT NOT NULL PRIMARY KEY,
    holder  TEXT NOT NULL,
    ends_at INTEGER NOT NULL
) WITHOUT ROWID;

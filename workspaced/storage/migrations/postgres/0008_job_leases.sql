-- As SQLite's.
CREATE TABLE job_lease (
    job     text COLLATE "C" NOT NULL PRIMARY KEY,
    holder  text COLLATE "C" NOT NULL,
    ends_at bigint NOT NULL
);

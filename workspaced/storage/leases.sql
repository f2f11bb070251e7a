-- Who does a job that only one process at a time should do.

-- name: take
-- By whoever comes when nobody has it, when its time is over, or by who has it.
INSERT INTO job_lease (job, holder, ends_at) VALUES (:job, :holder, :ends_at)
ON CONFLICT (job) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
WHERE job_lease.ends_at <= :now OR job_lease.holder = excluded.holder

-- name: give_back
DELETE FROM job_lease WHERE job = :job AND holder = :holder

-- Leases of jobs that only one process at a time should run.

-- name: take
-- Succeeds if the lease is free or expired, or if the caller holds it.
INSERT INTO job_lease (job, holder, ends_at) VALUES (:job, :holder, :ends_at)
ON CONFLICT (job) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
WHERE job_lease.ends_at <= :now OR job_lease.holder = excluded.holder

-- name: release
DELETE FROM job_lease WHERE job = :job AND holder = :holder

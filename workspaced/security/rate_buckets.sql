-- The token buckets of rate limits that several hosts share. Only PostgreSQL has this table.

-- name: lease
-- Take at most :wanted whole tokens; `granted` is the number of tokens taken. A caller without a row has a full bucket.
INSERT INTO rate_bucket (rate_limit, caller, tokens, granted, counted_at)
VALUES (:rate_limit, :caller, :burst - :wanted, :wanted, :now)
ON CONFLICT (rate_limit, caller) DO UPDATE SET
    granted = least(:wanted, floor({filled})),
    tokens = {filled} - least(:wanted, floor({filled})),
    counted_at = greatest(rate_bucket.counted_at, :now)
RETURNING granted, tokens

-- name: filled
least(:burst, rate_bucket.tokens + greatest(:now - rate_bucket.counted_at, 0) * :per_ms)

-- name: drop_full
DELETE FROM rate_bucket WHERE rate_limit = :rate_limit AND counted_at < :before

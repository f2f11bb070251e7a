-- A process skips the conversions that another process claims at the same time.

-- hold: due
FOR UPDATE OF c SKIP LOCKED

-- hold: lost
FOR UPDATE

-- hold: failures_of
FOR UPDATE

-- hold: lease_of
FOR UPDATE

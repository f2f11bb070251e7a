-- Processes that look for work at the same time pass over what another is just taking.

-- hold: due
FOR UPDATE OF c SKIP LOCKED

-- hold: lost
FOR UPDATE

-- hold: failures_of
FOR UPDATE

-- hold: lease_of
FOR UPDATE

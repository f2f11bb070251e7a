-- Processes that look for work at the same time pass over what another is just taking.

-- hold: due_first
FOR UPDATE OF d SKIP LOCKED

-- hold: due_again
FOR UPDATE OF d SKIP LOCKED

-- A lock that other requests of the writer share, and that one with a newer epoch or attempt waits for.

-- hold: find
FOR SHARE

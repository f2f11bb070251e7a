-- A lock that concurrent requests of the writer share. A request with a newer epoch or attempt waits for this lock.

-- hold: find
FOR SHARE

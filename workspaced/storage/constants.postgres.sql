-- A writing transaction that reads a setting keeps others from changing it until its commit; it shares the lock with other readers.

-- hold: read
FOR SHARE

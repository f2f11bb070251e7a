-- A transaction that rotates or revokes a key reads the row of the key with a lock.

-- hold: find_key
FOR NO KEY UPDATE

-- hold: keys_named
FOR NO KEY UPDATE

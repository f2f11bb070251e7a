-- A transaction that rotates or revokes a key locks it when it reads it.

-- hold: find_key
FOR NO KEY UPDATE

-- hold: keys_named
FOR NO KEY UPDATE

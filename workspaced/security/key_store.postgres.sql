-- Whoever rotates or revokes a key holds it from the reading on.

-- hold: find_key
FOR NO KEY UPDATE

-- hold: keys_named
FOR NO KEY UPDATE

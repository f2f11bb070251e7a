-- Whoever changes a workspace holds its row from the reading on.

-- hold: find_workspace
FOR NO KEY UPDATE

-- hold: find_any
FOR NO KEY UPDATE

-- A transaction that changes a workspace locks its row when it reads it.

-- hold: find_workspace
FOR NO KEY UPDATE

-- hold: find_any
FOR NO KEY UPDATE

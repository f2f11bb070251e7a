-- A transaction that changes a workspace locks the row when it reads the workspace.

-- hold: find_workspace
FOR NO KEY UPDATE

-- hold: find_any
FOR NO KEY UPDATE

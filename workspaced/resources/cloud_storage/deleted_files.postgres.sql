-- Locks in the order of all transactions: the workspace's row, then the file.

-- hold: find_any
FOR NO KEY UPDATE OF w, f

-- In the order in which everybody holds them: the workspace's row, then the file.

-- hold: find_any
FOR NO KEY UPDATE OF w, f

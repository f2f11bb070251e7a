"""HTTP servers: one process, or several workers of a supervisor; and the operators' listener."""

"""The plan of a sync: what it would change, its file, and its execution."""

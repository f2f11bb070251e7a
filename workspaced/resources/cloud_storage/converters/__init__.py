"""What makes other files out of a file: one module a kind, run in a process of its own with limits (contract C6)."""

"""Whether the process lives and can serve."""

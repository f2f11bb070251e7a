"""Data sinks, their entries, and mass updates (contract, S and M)."""

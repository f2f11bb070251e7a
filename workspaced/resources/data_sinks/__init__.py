"""Data sinks, their entries, and mass updates (contract S4, S7, M2, M3)."""

"""Comparison of the mirror's entries with the service's entries."""

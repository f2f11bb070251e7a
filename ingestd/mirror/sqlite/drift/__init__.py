"""Comparison of the entries with those of the service."""

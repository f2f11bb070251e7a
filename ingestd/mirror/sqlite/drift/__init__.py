"""Comparison of the entries with the entries of the service."""

"""Limits of the machine and its libraries: minimal programs without the guarantees of ingestd."""

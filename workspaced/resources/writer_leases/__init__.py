"""Leases of writers over HTTP: which process may send as a writer, and its epoch (contract M14)."""

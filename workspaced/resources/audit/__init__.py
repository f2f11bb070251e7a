"""The audit log over HTTP (contract G26)."""

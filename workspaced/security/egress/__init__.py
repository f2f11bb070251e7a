"""Requests of this service to URLs that users set, and the checks before them (contract H15)."""

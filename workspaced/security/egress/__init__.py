"""Requests of this service to URLs that users set, and the checks of these URLs (contract H15)."""

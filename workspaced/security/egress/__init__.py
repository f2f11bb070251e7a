"""Requests that this service makes to addresses which others chose, and the guard before them (contract H15)."""

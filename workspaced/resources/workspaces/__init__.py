"""Workspaces: create, list, get, update, delete, restore, purge (contract W1 to W7)."""

"""Workspaces: create, list, get, update, delete, restore, purge (contract W1, W2, W3, W4, W5, W6, W7)."""

"""Workspaces: create, list, get (contract W1, W2, W3, W4)."""

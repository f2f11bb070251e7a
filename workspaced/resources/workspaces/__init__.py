"""Workspaces: create, list, get (contract, W1 to W4)."""

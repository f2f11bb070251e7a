"""Installed for tests only: rich imports it if it can, which takes a twentieth of a start."""

raise ImportError

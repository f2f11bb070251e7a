"""Converters of files, one module for each kind. Each runs in a process with limits (contract C6)."""

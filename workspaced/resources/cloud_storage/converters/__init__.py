"""Converters of files, one module for each kind. Each conversion runs in a process with limits (contract C6)."""

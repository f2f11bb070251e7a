"""The mirror's statements by name."""

from __future__ import annotations

from ingestd.process.statements import load_statements

SQL = load_statements("ingestd.mirror.sqlite", "statements.sql")

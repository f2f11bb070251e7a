"""The mirror's statements by name."""

from __future__ import annotations

from collections.abc import Mapping

from ingestd.process.statements import Statement, load_statements

_FILES = ("statements.sql", "rejected.sql", "drift.sql", "trouble.sql", "history.sql")

SQL: Mapping[str, Statement] = {
    name: statement for file in _FILES for name, statement in load_statements("ingestd.mirror.sqlite", file).items()
}

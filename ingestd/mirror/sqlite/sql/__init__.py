"""The SQL statements of the mirror by name, from all .sql files of this package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from ingestd.process.statements import load_statements

_PACKAGE = "ingestd.mirror.sqlite.sql"

SQL: Mapping[str, str] = {
    name: statement
    for file in sorted(entry.name for entry in files(_PACKAGE).iterdir() if entry.name.endswith(".sql"))
    for name, statement in load_statements(_PACKAGE, file).items()
}

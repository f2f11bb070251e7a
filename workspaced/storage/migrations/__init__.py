"""The schema as numbered migration files, forward only, immutable once released.

Each database has a folder; the same number is the same step in both.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "postgres"]

_FILE = re.compile(r"(?P<number>\d{4})_[a-z_]+\.sql")


@cache
def steps(dialect: Dialect) -> tuple[tuple[int, str], ...]:
    """Return the number and SQL of each step, in order."""
    found = [
        (int(match["number"]), entry.read_text(encoding="utf-8"))
        for entry in files(__name__).joinpath(dialect).iterdir()
        if (match := _FILE.fullmatch(entry.name))
    ]
    return tuple(sorted(found))


def head() -> int:
    """Return the newest step that this program knows."""
    return max(number for number, _ in steps("sqlite"))


def newer(name: str, version: int) -> str:
    """Return the error message for a database that a newer program wrote; ``name`` is the database."""
    return (
        f"{name} was written by a newer workspaced (schema {version}; this one knows up to {head()}). "
        "Start that version again."
    )

"""The schema, step by step: numbered files, forward only, immutable once released.

Each database has its folder; the same number is the same step in both, in each one's own words. PostgreSQL begins with
0005, which holds all that SQLite had come to by then.
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
    """Number and SQL of every step, in order."""
    found = [
        (int(match["number"]), entry.read_text(encoding="utf-8"))
        for entry in files(__name__).joinpath(dialect).iterdir()
        if (match := _FILE.fullmatch(entry.name))
    ]
    return tuple(sorted(found))


def head() -> int:
    """The newest step this program knows."""
    return max(number for number, _ in steps("sqlite"))


def newer(name: str, version: int) -> str:
    """The sentence for a database that a newer program wrote; ``name`` says which database."""
    return (
        f"{name} was written by a newer workspaced (schema {version}; this one knows up to {head()}). "
        "Start that version again."
    )

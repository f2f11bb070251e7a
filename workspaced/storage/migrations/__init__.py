"""The schema as numbered migration files, forward only, immutable once released.

SQLite and PostgreSQL have one folder each; files of the same number are the same step. A program is identified by the newest
step that it knows.

The first line of a file is ``-- oldest program: N``: programs that know step N can use the database after this step. A step
that adds something keeps the N of the previous step. A step that raises N removes only things that programs from N on do not
use, so these programs also work before the step. Such a step is released after the first program without the removed things.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "postgres"]

_FILE = re.compile(r"(?P<number>\d{4})_[a-z_]+\.sql")
_OLDEST = re.compile(r"-- oldest program: (\d+)\n")


class MigrationStep(NamedTuple):
    """A migration file. After the step, a program must know step ``oldest_program`` to use the database."""

    number: int
    oldest_program: int
    sql: str


@cache
def steps(dialect: Dialect) -> tuple[MigrationStep, ...]:
    """Return the steps, in order.

    Raises:
        ValueError: a file does not begin with its oldest program.
    """
    found = []
    for entry in files(__name__).joinpath(dialect).iterdir():
        if match := _FILE.fullmatch(entry.name):
            text = entry.read_text(encoding="utf-8")
            oldest = _OLDEST.match(text)
            if oldest is None:
                raise ValueError(f"{entry.name} does not begin with the line `-- oldest program: N`")
            found.append(MigrationStep(int(match["number"]), int(oldest[1]), text))
    return tuple(sorted(found))


def head() -> int:
    """Return the newest schema that this program knows: its last step."""
    return steps("sqlite")[-1].number


def oldest() -> int:
    """Return the oldest schema that this program can use: its last step that adds something."""
    first, *_ = known = steps("sqlite")
    return max(
        (step.number for before, step in pairwise(known) if step.oldest_program == before.oldest_program),
        default=first.number,
    )

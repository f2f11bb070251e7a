"""SQL by name: statements live in ``.sql`` files, each under a ``-- name: …`` line, never in Python text.

A statement is written once for every database that understands it. Where PostgreSQL needs other words, ``x.postgres.sql``
beside ``x.sql`` has the same name again; and where a transaction that writes must keep what it reads as it is until its
end (which on SQLite, with its one writer, needs no words), the words to add are there under ``-- hold: …``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Self

_MARK = re.compile(r"^-- (?P<kind>name|hold): (?P<name>[a-z][a-z0-9_]*)$", re.MULTILINE)


class Statement(str):
    """A statement as SQLite takes it, with PostgreSQL's: ``postgres`` for readers, ``holding`` within a writing transaction."""

    __slots__ = ("holding", "postgres")

    postgres: str
    holding: str

    def __new__(cls, text: str, *, postgres: str | None = None, hold: str = "") -> Self:
        """``postgres`` None: the same text."""
        statement = super().__new__(cls, text)
        statement.postgres = text if postgres is None else postgres
        statement.holding = f"{statement.postgres}\n{hold}" if hold else statement.postgres
        return statement


def load_statements(package: str, resource: str) -> Mapping[str, Statement]:
    """The statements of one file of a package, by name, each with its variant for PostgreSQL.

    Raises:
        ValueError: a name occurs twice, or a variant is of no statement.
    """
    folder = files(package)
    texts = _read(folder.joinpath(resource))["name"]
    variant = resource.removesuffix(".sql") + ".postgres.sql"
    beside = folder.joinpath(variant)
    variants: Mapping[str, Mapping[str, str]] = _read(beside) if beside.is_file() else {"name": {}, "hold": {}}
    if strange := (variants["name"].keys() | variants["hold"].keys()) - texts.keys():
        raise ValueError(f"{variant} of {package} names {', '.join(sorted(strange))}, which {resource} does not have")
    return {
        name: Statement(text, postgres=variants["name"].get(name), hold=variants["hold"].get(name, ""))
        for name, text in texts.items()
    }


def _read(file: Traversable) -> Mapping[str, Mapping[str, str]]:
    """By kind of mark, then by name."""
    text = file.read_text(encoding="utf-8")
    marks = list(_MARK.finditer(text))
    found: dict[str, dict[str, str]] = {"name": {}, "hold": {}}
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark["name"] in found[mark["kind"]]:
            raise ValueError(f"{file.name} names '{mark['name']}' twice")
        part = text[mark.end() : following.start() if following else len(text)].strip()
        found[mark["kind"]][mark["name"]] = part
    return found

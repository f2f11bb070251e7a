"""Named SQL statements for SQLite and PostgreSQL.

A statement is written once if both databases accept it. Otherwise ``x.postgres.sql`` in the folder of ``x.sql`` has a variant
of the same name. A variant without text does nothing on PostgreSQL. In a writing transaction, the text of ``-- hold: NAME`` in
``x.postgres.sql`` is appended to the statement, and locks its rows until the transaction ends. SQLite needs no lock, because
it has one writer.

``{name}`` in a statement is replaced by the part of that name, such as the columns of a table. A part is not a statement, but
may contain other parts and have a variant.
``{a|b}`` turns one statement into two: the first has each ``a``, the second each ``b``. The name of the second statement has
``desc`` instead of ``asc``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Self

from ingestd.process import statements

_PART = re.compile(r"\{([a-z_]+)\}")
_ALTERNATIVES = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")


class Statement(str):
    """A statement for SQLite, and its variants for PostgreSQL.

    ``postgres`` is for readers, ``locking`` for writing transactions.
    """

    __slots__ = ("locking", "postgres")

    postgres: str
    locking: str

    def __new__(cls, text: str, *, postgres: str, lock: str) -> Self:
        """Append ``lock`` for writing transactions."""
        statement = super().__new__(cls, text)
        statement.postgres = postgres
        statement.locking = f"{postgres}\n{lock}" if lock else postgres
        return statement


def load_statements(package: str, resource: str) -> Mapping[str, Statement]:
    """Return the statements of one file of a package, by name, with their variants for PostgreSQL.

    Raises:
        ValueError: a name occurs twice, or a variant has no statement.
        KeyError: a statement names a part that the file does not have.
    """
    own = statements.load_statements(package, resource)
    texts: dict[str, str] = {}
    for name, text in _expanded(own):
        if name in texts:
            raise ValueError(f"{resource} of {package} names '{name}' twice")
        texts[name] = text
    variant = resource.removesuffix(".sql") + ".postgres.sql"
    variants: Mapping[str, str] = {}
    locks: Mapping[str, str] = {}
    if files(package).joinpath(variant).is_file():
        variants = statements.load_statements(package, variant)
        locks = statements.load_statements(package, variant, kind="hold")
    if unknown := (variants.keys() - own.keys()) | (locks.keys() - texts.keys()):
        raise ValueError(f"{variant} of {package} names {', '.join(sorted(unknown))}, which {resource} does not have")
    postgres = dict(_expanded({**own, **variants}))
    return {name: Statement(text, postgres=postgres[name], lock=locks.get(name, "")) for name, text in texts.items()}


def _whole(text: str, texts: Mapping[str, str]) -> str:
    """Return a text with its parts inserted, recursively."""
    return _PART.sub(lambda found: _whole(texts[found[1]], texts), text)


def _expanded(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each statement of a file, with its parts inserted and its alternatives split."""
    parts = {name for text in texts.values() for name in _PART.findall(text)}
    for name, text in texts.items():
        if name in parts:
            continue
        whole = _whole(text, texts)
        yield name, _ALTERNATIVES.sub(r"\1", whole)
        if _ALTERNATIVES.search(whole):
            yield name.replace("asc", "desc"), _ALTERNATIVES.sub(r"\2", whole)

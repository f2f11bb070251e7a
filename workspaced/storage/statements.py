"""SQL by name for both databases.

A statement is written once if both databases understand it. A variant for PostgreSQL is in ``x.postgres.sql`` beside ``x.sql``,
under the same name; a variant without text does nothing on PostgreSQL. Text under ``-- hold: NAME`` in that file is appended to
the statement in a writing transaction: a lock that keeps the rows unchanged until the transaction ends. SQLite has one writer
and needs none.

``{name}`` in a statement is replaced by the text under that name, such as the columns of a table; that text is no statement. A
part may have parts and a variant.
``{a|b}`` makes two statements of one: the first has each ``a``; the second has each ``b``, and ``desc`` in its name instead of
``asc``.
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
    """Return a text with its parts, which may have parts."""
    return _PART.sub(lambda found: _whole(texts[found[1]], texts), text)


def _expanded(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the statements of a file with their parts and alternatives."""
    parts = {name for text in texts.values() for name in _PART.findall(text)}
    for name, text in texts.items():
        if name in parts:
            continue
        whole = _whole(text, texts)
        yield name, _ALTERNATIVES.sub(r"\1", whole)
        if _ALTERNATIVES.search(whole):
            yield name.replace("asc", "desc"), _ALTERNATIVES.sub(r"\2", whole)

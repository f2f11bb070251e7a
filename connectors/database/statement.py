"""The parts of the SELECT statements: what follows FROM, and the parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from connectors.database.port import PLACEHOLDER, Parameter, ResultColumn, SqlDialect

ALIAS = "ingestd_rows"
"""The name of the table or query in a statement; a column may be qualified with it."""

_PART = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|([^".`]+)')


def parse_table(text: str) -> tuple[str, ...]:
    """Return the parts of a table's name as SQL writes it; upper and lower case are kept also without quotes.

    Raises:
        ValueError: a part is empty, or a quote has no end.
    """
    parts: list[str] = []
    rest = text.strip()
    while True:
        found = _PART.match(rest)
        end = found.end() if found is not None else 0
        if found is None or rest[end : end + 1] not in {"", "."}:
            raise ValueError('this is no name of a table; write schema.table, or "a.b" for a name with a dot')
        quoted, ticked, plain = found.groups()
        parts.append(quoted.replace('""', '"') if quoted else ticked.replace("``", "`") if ticked else plain)
        if end == len(rest):
            return tuple(parts)
        rest = rest[end + 1 :]


def source(dialect: SqlDialect, *, table: str | None, query: str | None) -> str:
    """Return what follows FROM: the table or the query, with the name `ALIAS`."""
    if table is not None:
        return f"{'.'.join(map(dialect.quote, parse_table(table)))} {dialect.alias_keyword}{ALIAS}"
    # What follows is on a new line, because the query may end in a comment.
    return f"({str(query).strip().rstrip(';')}\n) {dialect.alias_keyword}{ALIAS}"


def select(dialect: SqlDialect, columns: Sequence[ResultColumn], from_: str, rest: str = "") -> str:
    """Return a statement that selects the exact text of ``columns``."""
    texts = ", ".join(dialect.exact_text(column) for column in columns)
    return f"SELECT {texts} FROM {from_} {rest}".rstrip()


def bind(sql: str, parameters: Sequence[Parameter], literal: Callable[[Parameter], str]) -> str:
    """Return ``sql`` with the ``literal`` of a parameter in place of each placeholder, in order."""
    first, *others = sql.split(PLACEHOLDER)
    return first + "".join(literal(value) + part for value, part in zip(parameters, others, strict=True))

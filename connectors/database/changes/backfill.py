"""A backfill: every row of a table is read again, one page with each reading of changes.

The state of the backfill is a member of the cursor, so it becomes durable with the rows of the page. A page has the rows
after the last key of the previous page, up to its own last key. The page is read in the same transaction as the changes. So
its rows are as new as the cursor, and their later changes are found as usual.

Pages neither overlap nor leave a gap, with any collation, and even if the text of a key is not exact. So each row is in
exactly one page, also if keys are equal. A row with NULL in its key is in no page, because it is rejected anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from connectors.database.changes.hashed_rows import HashedRows
from connectors.database.changes.method import Restriction
from connectors.database.port import ALIAS, PLACEHOLDER, Parameter, ResultColumn, SqlDialect
from ingestd.sdk import Cursor, SourceBroken

_MEMBER = "backfill"
_DIALECTS = frozenset({"postgresql", "mariadb", "sqlite"})


class Backfill(NamedTuple):
    """The progress of a backfill."""

    keys: tuple[str, ...]
    after: tuple[Parameter, ...] | None = None
    """The last key of the last page that was read; None if no page was read yet."""
    rows: int = 0
    """The number of rows that the backfill has read."""
    of: int | None = None
    """The number of rows of the table when the backfill began; None before its first page."""

    @property
    def member(self) -> Mapping[str, Any]:
        """The backfill as a member of the cursor."""
        return {_MEMBER: self._asdict()}

    @property
    def progress(self) -> str:
        """A sentence about the progress, for operators."""
        of = f" of about {self.of}" if self.of is not None else ""
        return f"A backfill reads all rows again: {self.rows}{of} rows were read."


class BackfillPage(NamedTuple):
    """The condition that selects a page's rows. ``after``: the last key of the page; None if it is the last page."""

    restriction: Restriction
    after: tuple[Parameter, ...] | None


def stored_backfill(cursor: Mapping[str, Any] | None, keys: Sequence[str]) -> Backfill | None:
    """Return the backfill of a cursor, or None. If the configured keys have changed, the backfill begins again."""
    member = cursor.get(_MEMBER) if cursor is not None else None
    if member is None:
        return None
    if list(member["keys"]) != list(keys):
        return Backfill(tuple(keys))
    after = tuple(member["after"]) if member["after"] is not None else None
    return Backfill(tuple(keys), after, member["rows"], member["of"])


def begin_backfill(cursor: Cursor, dialect: SqlDialect) -> Cursor:
    """Return the cursor with a new backfill, which replaces a running backfill.

    Raises:
        SourceBroken: the table can't be read in pages, or every reading reads the whole table.
    """
    if "reading" not in cursor:
        raise SourceBroken(
            "A backfill needs mode: changes and a method that finds changed rows. Here each reading is whole."
        )
    if not dialect.options.keys:
        raise SourceBroken("A backfill reads the rows in the order of their keys, so the source needs the setting key.")
    if dialect.name not in _DIALECTS:
        raise SourceBroken("A backfill is possible for PostgreSQL, MariaDB, MySQL and SQLite only.")
    return {**cursor, **Backfill(dialect.options.keys).member}


def cancel_backfill(cursor: Cursor) -> Cursor:
    """Return the cursor without its backfill.

    Raises:
        SourceBroken: there is no backfill.
    """
    if _MEMBER not in cursor:
        raise SourceBroken("No backfill runs.")
    return {name: value for name, value in cursor.items() if name != _MEMBER}


def next_page(rows: HashedRows, backfill: Backfill, most_rows: int) -> BackfillPage:
    """Return the next page of a backfill: ``most_rows`` rows, and further rows if their key equals the last row's key."""
    dialect, keys = rows.dialect, rows.key_columns
    names = [f"{ALIAS}.{dialect.quote(column.name)}" for column in keys]
    parts = [Restriction(" AND ".join(f"{name} IS NOT NULL" for name in names))]
    if backfill.after is not None:
        parts.append(_beyond(names, backfill.after, ">"))
    rest = _joined(parts)
    order = f"WHERE {rest.condition} ORDER BY {', '.join(names)} LIMIT 1 OFFSET {most_rows - 1}"
    # In SQLite, each value has its own type, and numbers sort before texts. So the types of the key's values are read, too.
    kinds = [
        ResultColumn(name=f"kind {at}", type="", expression=dialect.storage_class.format(name))
        for at, name in enumerate(names)
    ]
    frames = rows.session.frames([*keys, *kinds], rows.dialect.source, order, rest.parameters)
    found = pl.concat([frame.records for frame in frames]).rows()
    last = [tuple(map(_typed, row[: len(keys)], row[len(keys) :])) for row in found]
    # A key without an exact text, or equal to the previous end, can't end a page. Then all remaining rows are one page.
    after = tuple(value for value in last[0] if value is not None) if last else ()
    if len(after) < len(names) or after == backfill.after:
        return BackfillPage(rest, None)
    return BackfillPage(_joined([*parts, _beyond(names, after, "<")]), after)


def _typed(text: str | None, kind: str) -> Parameter | None:
    if text is None or kind not in {"integer", "real"}:
        return text
    return int(text) if kind == "integer" else float(text)


def _joined(parts: Sequence[Restriction]) -> Restriction:
    return Restriction(
        " AND ".join(part.condition for part in parts), tuple(value for part in parts for value in part.parameters)
    )


def _beyond(names: Sequence[str], values: Sequence[Parameter], sign: str) -> Restriction:
    """Return the condition for keys greater than ``values`` (sign ``>``), or at most ``values`` (``<``).

    The SQL compares one column at a time, because MariaDB uses no index to compare row values.
    """
    name, value = names[0], values[0]
    if len(names) == 1:
        return Restriction(f"{name} {'>' if sign == '>' else '<='} {PLACEHOLDER}", (value,))
    inner = _beyond(names[1:], values[1:], sign)
    condition = f"({name} {sign}= {PLACEHOLDER} AND ({name} {sign} {PLACEHOLDER} OR {inner.condition}))"
    return Restriction(condition, (value, value, *inner.parameters))

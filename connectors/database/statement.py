"""The SELECT statements."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.sql.base import Executable

from connectors.database.options import DatabaseOptions

_EVERYTHING = sa.text("*")


def select(options: DatabaseOptions, *, last: str | float | None = None) -> Executable:
    """Select all rows, or those from the cursor value ``last`` on, ordered by cursor and key.

    ``last`` is bound without a type, so that the database compares it in the type of its column. So a timestamp is compared
    to the microsecond, and never as text.
    """
    if options.cursor is None:
        return _query(options) if options.query is not None else sa.select(_EVERYTHING).select_from(_source(options))
    order: list[sa.ColumnClause[object]] = [sa.column(name) for name in dict.fromkeys([options.cursor, *options.keys])]
    rows = sa.select(_EVERYTHING).select_from(_source(options)).order_by(*order)
    if last is None:
        return rows
    return rows.where(sa.column(options.cursor) >= sa.bindparam("ingestd_last", value=last, type_=sa.types.NullType()))


def no_rows(options: DatabaseOptions) -> Executable:
    """Select the columns without rows."""
    return sa.select(_EVERYTHING).select_from(_source(options)).where(sa.text("1 = 0"))


def without_cursor_value(options: DatabaseOptions) -> Executable:
    """Count the rows without a value in the cursor column."""
    return sa.select(sa.text("count(*)")).select_from(_source(options)).where(sa.column(str(options.cursor)).is_(None))


def _source(options: DatabaseOptions) -> sa.FromClause:
    if options.table is None:
        return _query(options).columns().subquery("ingestd_rows")
    schema, _, name = options.table.rpartition(".")
    return sa.table(name, schema=schema or None)


def _query(options: DatabaseOptions) -> sa.TextClause:
    query = str(options.query).strip().rstrip(";")
    # A colon of the query ('12:30', ::text) is no parameter. What follows is on a new line, because the query may end in a
    # comment.
    return sa.text(f"{query}\n".replace(":", "\\:"))

"""Errors of a database as sentences, classified by what to do, and without the password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from connectors.database.options import DatabaseOptions
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

_SQLITE_BROKEN = frozenset(
    {1, 8, 11, 20, 23, 25, 26}
)  # error, readonly, corrupt, mismatch, auth, range, not a database
_POSTGRESQL_AWAY = ("08", "40", "53", "55", "57", "58")  # connection, rollback, resources, state, operator, system
_POSTGRESQL_NO_TABLE = "42P01"
_NAMED = 20


@contextmanager
def as_sentences(engine: Engine, options: DatabaseOptions) -> Iterator[None]:
    """Raise every error of the driver as a `SourceError`."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _translate(error, engine, options) from None  # the driver's error may show the address


def shown(options: DatabaseOptions) -> str:
    """Return the database's address without the password."""
    return options.address().render_as_string(hide_password=True)


def _translate(error: SQLAlchemyError, engine: Engine, options: DatabaseOptions) -> SourceError:
    words = _message(error, options)
    where = shown(options)
    if not isinstance(error, DBAPIError) or error.orig is None:
        return SourceBroken(f"The database {where} can't be read: {words}.")
    if _is_time_limit(error):
        return SourceUnavailable(
            f"The database {where} took longer than {options.statement_timeout_seconds:g} seconds for one request"
            " (statement_timeout_seconds)."
        )
    if _is_away(error):
        return SourceUnavailable(f"The database {where} can't be reached: {words}.")
    return SourceBroken(f"The database {where} refuses the reading: {words}.{_tables(error, engine)}")


def _is_away(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return int(code) & 0xFF not in _SQLITE_BROKEN
    state = getattr(error.orig, "sqlstate", None)
    return state is None or str(state).startswith(_POSTGRESQL_AWAY)


def _is_time_limit(error: DBAPIError) -> bool:
    return (
        getattr(error.orig, "sqlite_errorname", "") == "SQLITE_INTERRUPT"
        or getattr(error.orig, "sqlstate", "") == "57014"
    )


def _message(error: SQLAlchemyError, options: DatabaseOptions) -> str:
    """Return the driver's message on one line, without the password."""
    text = str(error.orig if isinstance(error, DBAPIError) else error)
    words = " ".join(text.split()).rstrip(".")
    password = options.address().password
    return words.replace(str(password), "***") if password else words


def _tables(error: DBAPIError, engine: Engine) -> str:
    """Return a sentence with the existing tables if a table is missing; else empty."""
    if getattr(error.orig, "sqlstate", None) != _POSTGRESQL_NO_TABLE and "no such table" not in str(error.orig):
        return ""
    try:
        with engine.connect() as connection:
            inspector = sa.inspect(connection)
            names = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
    except SQLAlchemyError:
        return ""  # a second failure would hide the missing table
    if not names:
        return " There are no tables."
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" There are the tables {', '.join(names[:_NAMED])}{more}."

"""The kinds of databases, each with the package that it needs."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.database.login import LoginGuard
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from connectors.database.sqlite import SqliteDatabase
from ingestd.sdk import SourceBroken

if TYPE_CHECKING:
    from connectors.database.notifications import NotificationListener

_NEEDS_PSYCOPG = "PostgreSQL needs psycopg: install ingestd[postgres]"


def create_database(options: DatabaseOptions, base: Path) -> Database:
    """Return the database of ``options``; relative paths are resolved against ``base``.

    Raises:
        SourceBroken: the package of the driver is not installed.
    """
    # The drivers of servers are extras, so each is imported when it is needed.
    match options.address().family:
        case "sqlite":
            return SqliteDatabase(options, base)
        case "postgresql":
            try:
                from connectors.database.postgresql import PostgresqlDatabase  # noqa: PLC0415
            except ImportError as error:
                raise SourceBroken(f"{_NEEDS_PSYCOPG} ({error}).") from error
            return PostgresqlDatabase(options)
        case "mariadb":
            try:
                from connectors.database.mariadb import MariadbDatabase  # noqa: PLC0415
            except ImportError as error:
                raise SourceBroken(f"MariaDB and MySQL need PyMySQL: install ingestd[mariadb] ({error}).") from error
            return MariadbDatabase(options)
        case "sqlserver":
            try:
                from connectors.database.sqlserver import SqlServerDatabase  # noqa: PLC0415
            except ImportError as error:
                raise SourceBroken(f"SQL Server needs mssql-python: install ingestd[mssql] ({error}).") from error
            return SqlServerDatabase(options)
        case "oracle":
            try:
                from connectors.database.oracle import OracleDatabase  # noqa: PLC0415
            except ImportError as error:
                raise SourceBroken(f"Oracle needs oracledb: install ingestd[oracle] ({error}).") from error
            return OracleDatabase(options)


def create_listener(
    options: DatabaseOptions,
    login: LoginGuard,
    *,
    wake: Callable[[], None],
    now: Callable[[], float],
    report: Callable[[str], None],
) -> NotificationListener:
    """Return the listener of ``options.notify``, not started; see `NotificationListener`.

    Raises:
        SourceBroken: the package of the driver is not installed.
    """
    try:
        from connectors.database.notifications import NotificationListener  # noqa: PLC0415
    except ImportError as error:
        raise SourceBroken(f"{_NEEDS_PSYCOPG} ({error}).") from error
    return NotificationListener(options, login, wake=wake, now=now, report=report)


def verify_listener(options: DatabaseOptions) -> str:
    """Listen on the channel of ``options.notify`` for a moment; return the address without a password.

    Raises:
        SourceUnavailable: the database is not reachable now.
        SourceBroken: the database or a pooler does not permit it.
    """
    try:
        from connectors.database.postgresql_listen import ListenConnection  # noqa: PLC0415
    except ImportError as error:
        raise SourceBroken(f"{_NEEDS_PSYCOPG} ({error}).") from error
    here, there = socket.socketpair()  # nothing interrupts
    with here, there, closing(ListenConnection(options, here.fileno())) as connection:
        return connection.where

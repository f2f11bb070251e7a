"""The kinds of databases, each with the package that it needs."""

from __future__ import annotations

from pathlib import Path

from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from connectors.database.sqlite import SqliteDatabase
from ingestd.sdk import SourceBroken


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
                raise SourceBroken(f"PostgreSQL needs psycopg: install ingestd[postgres] ({error}).") from error
            return PostgresqlDatabase(options)
        case "mariadb":
            try:
                from connectors.database.mariadb import MariadbDatabase  # noqa: PLC0415
            except ImportError as error:
                raise SourceBroken(f"MariaDB and MySQL need PyMySQL: install ingestd[mariadb] ({error}).") from error
            return MariadbDatabase(options)

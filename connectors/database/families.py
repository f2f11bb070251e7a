"""The kinds of databases, each with the package that it needs."""

from __future__ import annotations

from pathlib import Path

from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from ingestd.sdk import SourceBroken


def create_database(options: DatabaseOptions, base: Path) -> Database:
    """Return the database of ``options``; relative paths are resolved against ``base``.

    Raises:
        SourceBroken: the package of the driver is not installed.
    """
    # The drivers of servers are extras, so each is imported when it is needed.
    family = options.address().family
    try:
        match family:
            case "sqlite":
                from connectors.database.sqlite import SqliteDatabase  # noqa: PLC0415

                return SqliteDatabase(options, base)
            case "postgresql":
                from connectors.database.postgresql import PostgresqlDatabase  # noqa: PLC0415

                return PostgresqlDatabase(options)
            case "mariadb":
                from connectors.database.mariadb import MariadbDatabase  # noqa: PLC0415

                return MariadbDatabase(options)
    except ImportError as error:
        extra = {"postgresql": "PostgreSQL needs psycopg: install ingestd[postgres]"}.get(
            family, "MariaDB and MySQL need PyMySQL: install ingestd[mariadb]"
        )
        raise SourceBroken(f"{extra} ({error}).") from error

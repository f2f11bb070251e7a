"""The kinds of databases, and the driver package of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.database.address import Family
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from connectors.database.sqlite import SqliteDatabase
from ingestd.sdk import SourceBroken

EXPERIMENTAL = frozenset({"sqlserver", "oracle"})
"""The kinds of databases that no test accesses on a real server."""

_EXTRAS: dict[Family, tuple[str, str]] = {
    "postgresql": ("PostgreSQL needs psycopg", "postgres"),
    "mariadb": ("MariaDB and MySQL need PyMySQL", "mariadb"),
    "sqlserver": ("SQL Server needs mssql-python", "mssql"),
    "oracle": ("Oracle needs oracledb", "oracle"),
}


def create_database(options: DatabaseOptions, base: Path) -> Database:
    """Return the database that ``options`` name. Relative paths start at ``base``.

    Raises:
        SourceBroken: the package of the driver is not installed.
    """
    family = options.address().family
    if family == "sqlite":
        return SqliteDatabase(options, base)
    with driver_of(family):
        match family:
            case "postgresql":
                from connectors.database.postgresql import PostgresqlDatabase  # noqa: PLC0415

                return PostgresqlDatabase(options)
            case "mariadb":
                from connectors.database.mariadb import MariadbDatabase  # noqa: PLC0415

                return MariadbDatabase(options)
            case "sqlserver":
                from connectors.database.sqlserver import SqlServerDatabase  # noqa: PLC0415

                return SqlServerDatabase(options)
            case "oracle":
                from connectors.database.oracle import OracleDatabase  # noqa: PLC0415

                return OracleDatabase(options)


@contextmanager
def driver_of(family: Family) -> Iterator[None]:
    """While the context is open, convert an `ImportError` to an error about the missing driver package of ``family``.

    Raises:
        SourceBroken: the driver is not installed.
    """
    try:
        yield
    except ImportError as error:
        need, extra = _EXTRAS[family]
        raise SourceBroken(f"{need}: install ingestd[{extra}] ({error}).") from error

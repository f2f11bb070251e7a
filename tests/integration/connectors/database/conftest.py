"""A SQLite file, a PostgreSQL schema and a MariaDB database for each test, and connectors that read them."""

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import SourceContext
from tests.support.postgres_server import server_of_tests
from tests.support.private_servers import MariadbServer, mariadb_connection, restartable_mariadb_server


class Database:
    """A real database: ``do`` changes it, ``connector`` reads it; ``name`` qualifies a table."""

    def __init__(self, kind: str, url: str, do: Callable[..., object], base: Path, schema: str = "") -> None:
        self.kind = kind
        self.url = url
        self.do = do
        self.base = base
        self.schema = schema
        self._connectors = ExitStack()

    def name(self, table: str) -> str:
        return f"{self.schema}.{table}" if self.schema else table

    def connector(self, **options: Any) -> DatabaseConnector:
        settings = DatabaseOptions.model_validate({"url": self.url} | options)
        connector = DatabaseConnector(settings, SourceContext(pipeline="test", base=self.base, now=lambda: 0.0))
        self._connectors.callback(connector.close)
        return connector

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connectors.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    with (
        closing(sqlite3.connect(tmp_path / "pdm.db", isolation_level=None)) as connection,
        Database("sqlite", "sqlite:///pdm.db", connection.execute, tmp_path) as database,
    ):
        yield database


@pytest.fixture
def postgresql(tmp_path: Path) -> Iterator[Database]:
    url, schema = server_of_tests(), f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        with Database("postgresql", url, connection.execute, tmp_path, schema) as database:
            yield database
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(scope="session")
def mariadb_of_tests() -> Iterator[MariadbServer | None]:
    """A server that tests may restart; None if they use a given one."""
    if os.environ.get("INGESTD_TEST_MARIADB_URL"):
        yield None
        return
    with restartable_mariadb_server() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_url(mariadb_of_tests: MariadbServer | None) -> str:
    return mariadb_of_tests.url if mariadb_of_tests is not None else os.environ["INGESTD_TEST_MARIADB_URL"]


@pytest.fixture(scope="session")
def mariadb_restart(mariadb_of_tests: MariadbServer | None) -> Callable[[], None] | None:
    return mariadb_of_tests.restart if mariadb_of_tests is not None else None


@pytest.fixture
def mariadb(tmp_path: Path, mariadb_url: str) -> Iterator[Database]:
    schema = f"t{uuid.uuid4().hex[:12]}"
    with mariadb_connection(mariadb_url) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES'")
        cursor.execute(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
        with Database("mariadb", mariadb_url, cursor.execute, tmp_path, schema) as database:
            yield database
        cursor.execute(f"DROP DATABASE {schema}")


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found

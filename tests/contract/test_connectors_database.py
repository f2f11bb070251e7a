"""The database connector passes the conformance suite on every database and in both modes."""

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest

from connectors.database import DatabaseConnector, DatabaseOptions
from ingestd.sdk import Connector, SourceContext
from ingestd.sdk.testing import ConnectorConformance, Rig
from ingestd.sdk.testing.source_reader import read
from tests.support.postgres_server import PostgresServer, postgresql_server, server_of_tests
from tests.support.private_servers import mariadb_connection, mariadb_server

_CREATED: list[DatabaseConnector] = []


@pytest.fixture(autouse=True)
def _closed_connectors() -> Iterator[None]:
    yield
    while _CREATED:
        _CREATED.pop().close()


class TableRig(Rig):
    """A table of ten rows, read three at a time; ``do`` changes it."""

    def __init__(self, url: str, table: str, do: Callable[[str], object], base: Path, **more: Any) -> None:
        self._table = table
        self._do = do
        self._context = SourceContext(pipeline="t", base=base, now=lambda: 0.0)
        self._settings = {"url": url, "table": table, "key": "id", "batch_rows": 3} | more
        do(f"CREATE TABLE {table} (id INTEGER, mass TEXT, at INTEGER)")
        for number in range(10):
            do(f"INSERT INTO {table} VALUES ({number}, '0.10', {number // 4})")

    def connector(self) -> Connector:
        _CREATED.append(DatabaseConnector(DatabaseOptions.model_validate(self._settings), self._context))
        return _CREATED[-1]

    def add(self) -> None:
        self._do(f"INSERT INTO {self._table} VALUES (10, '1e-7', 7)")

    def change(self) -> None:
        self._do(f"UPDATE {self._table} SET mass = 'changed', at = 8 WHERE id = 3")

    def remove(self) -> None:
        self._do(f"DELETE FROM {self._table} WHERE id = 5")

    def broken(self) -> Connector:
        self._do(f"DROP TABLE {self._table}")
        return self.connector()


class SnapshotRig(TableRig):
    unchanged_yields_nothing: ClassVar[bool] = False


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    connection = sqlite3.connect(tmp_path / "pdm.db", isolation_level=None)
    yield lambda kind, **more: kind("sqlite:///pdm.db", "parts", connection.execute, tmp_path, **more)
    connection.close()


@pytest.fixture
def in_postgresql(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    url, schema = server_of_tests(), f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield lambda kind, **more: kind(url, f"{schema}.parts", connection.execute, tmp_path, **more)
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture(scope="session")
def own_postgresql() -> Iterator[PostgresServer]:
    with postgresql_server() as server:
        yield server


@pytest.fixture
def in_own_postgresql(tmp_path: Path, own_postgresql: PostgresServer) -> Iterator[Callable[..., Rig]]:
    with own_postgresql.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS parts")
        yield lambda kind, **more: kind(own_postgresql.url, "parts", connection.execute, tmp_path, **more)


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    with mariadb_server() as url:
        yield url


@pytest.fixture
def in_mariadb(tmp_path: Path, mariadb_url: str) -> Iterator[Callable[..., Rig]]:
    schema = f"t{uuid.uuid4().hex[:12]}"
    with mariadb_connection(mariadb_url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {schema}")
        yield lambda kind, **more: kind(mariadb_url, f"{schema}.parts", cursor.execute, tmp_path, **more)
        cursor.execute(f"DROP DATABASE {schema}")


@pytest.fixture(params=["in_sqlite", "in_postgresql", "in_mariadb"])
def in_database(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


class TestSnapshot(ConnectorConformance):
    @pytest.fixture
    def rig(self, in_database: Callable[..., Rig]) -> Rig:
        return in_database(SnapshotRig)


class TestChanges(ConnectorConformance):
    """The PostgreSQL server has no other clients: their open transactions would have rows be read again."""

    @pytest.fixture
    def rig(self, in_own_postgresql: Callable[..., Rig]) -> Rig:
        return in_own_postgresql(TableRig, mode="changes")


class TestChangesOfAFile(ConnectorConformance):
    """Versions of a SQLite file can be compared within one connection only, so it is read once after a start."""

    @pytest.fixture
    def rig(self, in_sqlite: Callable[..., Rig]) -> Rig:
        return in_sqlite(SnapshotRig, mode="changes")

    def test_an_unchanged_source_yields_nothing_from_its_last_cursor(self, rig: Rig) -> None:
        connector = rig.connector()
        (partition,) = connector.partitions()
        cursor = read(connector, partition)[-1].cursor
        assert read(connector, partition, cursor) == []
        assert read(rig.connector(), partition, cursor)[-1].last


class TestChangesOfNumbers(ConnectorConformance):
    """A number without a lag is no reliable cursor, so everything is read."""

    @pytest.fixture
    def rig(self, in_mariadb: Callable[..., Rig]) -> Rig:
        return in_mariadb(SnapshotRig, mode="changes", cursor="at")

"""Databases with a table ``p`` that tests change, and readers of their changes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connectors.database.changes import ChangeReader, ChangeSource
from connectors.database.families import create_database
from connectors.database.options import DatabaseOptions
from connectors.database.port import Database
from connectors.database.statement import source as from_clause
from tests.support.changing_table import Client, SqlClient, SqliteClient
from tests.support.private_servers import MariadbServer, PostgresServer, mariadb_server, postgresql_server


@dataclass(kw_only=True)
class Scene:
    """A database. ``clock`` is its expression of the time, ``view`` the name of a view of ``p``."""

    kind: str
    url: str
    clock: str
    client: Callable[[], Client]
    base: Path
    reports: list[str] = field(default_factory=list)

    def do(self, *statements: str) -> None:
        client = self.client()
        for statement in statements:
            client.do(statement)
        client.close()

    def database(self, **options: Any) -> Database:
        settings = DatabaseOptions.model_validate({"url": self.url, "table": "p", "batch_rows": 50} | options)
        return create_database(settings, self.base)

    def reader(self, name: str = "p", *, now: Callable[[], float] = lambda: 0.0, choose: Any = None, **more: Any) -> ChangeReader:
        database = self.database()
        settings: dict[str, Any] = {"source": from_clause(database.dialect, table=name, query=None), "slack_seconds": 0.5}
        settings |= {"table": database.dialect.quote(name)} | more
        source = ChangeSource(**settings)
        return ChangeReader(
            database,
            source,
            identity=self.url,
            sweep_seconds=3600,
            columns=lambda session: session.columns(source.source),
            now=now,
            report=self.reports.append,
            path=self.base / "p.db" if self.kind == "sqlite" else None,
            **({"choose": choose} if choose else {}),
        )

    def rows(self) -> dict[str, tuple[str | None, ...]]:
        database = self.database()
        with database.open() as session:
            columns = session.columns("p")
            frames = [frame.records for frame in session.frames(columns, from_clause(database.dialect, table="p", query=None))]
        return {str(row[0]): row for frame in frames for row in frame.rows()}


@pytest.fixture(scope="session")
def postgresql_server_of_tests() -> Iterator[PostgresServer]:
    with postgresql_server("-c max_prepared_transactions=20") as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server_of_tests() -> Iterator[MariadbServer]:
    with mariadb_server() as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server_of_tests: PostgresServer, tmp_path: Path) -> Scene:
    server = postgresql_server_of_tests
    scene = Scene(
        kind="postgresql", url=server.url, clock="now()", client=lambda: SqlClient("postgresql", server.connect), base=tmp_path
    )
    scene.do(
        "DROP TABLE IF EXISTS p CASCADE",
        "CREATE TABLE p (id int PRIMARY KEY, v text, at timestamptz)",
        "CREATE VIEW w AS SELECT * FROM p",
    )
    return scene


@pytest.fixture
def mariadb(mariadb_server_of_tests: MariadbServer, tmp_path: Path) -> Scene:
    server = mariadb_server_of_tests

    def connect() -> Any:
        # Without gap locks, so that writers of different rows do not wait for each other.
        return server.connect(database="test", init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    scene = Scene(kind="mariadb", url=server.url, clock="NOW(6)", client=lambda: SqlClient("mariadb", connect), base=tmp_path)
    scene.do(
        "DROP TABLE IF EXISTS p",
        "CREATE TABLE p (id int PRIMARY KEY, v text, at datetime(6))",
        "CREATE OR REPLACE VIEW w AS SELECT * FROM p",
    )
    return scene


@pytest.fixture
def sqlite(tmp_path: Path) -> Scene:
    path, lock = tmp_path / "p.db", threading.Lock()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT, at TEXT)")
    connection.close()
    return Scene(
        kind="sqlite",
        url="sqlite:///p.db",
        clock="strftime('%Y-%m-%d %H:%M:%f')",
        client=lambda: SqliteClient(str(path), lock),
        base=tmp_path,
    )

"""Databases with a table ``p`` and a view ``w`` of it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_table import SqlClient, SqliteClient
from tests.support.database_scene import DatabaseScene
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.private_servers import mariadb_connection


@pytest.fixture(scope="session")
def postgresql_server_of_tests() -> Iterator[PostgresServer]:
    with postgresql_server("-c max_prepared_transactions=20", "-c deadlock_timeout=50ms") as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server_of_tests: PostgresServer, tmp_path: Path) -> DatabaseScene:
    server = postgresql_server_of_tests
    scene = DatabaseScene(
        kind="postgresql",
        url=server.url,
        clock="now()",
        client=lambda: SqlClient("postgresql", server.connect),
        base=tmp_path,
        restart=server.crash,
    )
    scene.do(
        "DROP TABLE IF EXISTS p CASCADE",
        "CREATE TABLE p (id int PRIMARY KEY, v text, at timestamptz)",
        "CREATE VIEW w AS SELECT * FROM p",
    )
    return scene


@pytest.fixture
def mariadb(mariadb_url: str, mariadb_restart: Callable[[], None] | None, tmp_path: Path) -> DatabaseScene:

    def connect() -> Any:
        # Without gap locks, so that writers of different rows do not wait for each other.
        connection = mariadb_connection(mariadb_url)
        connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return connection

    scene = DatabaseScene(
        kind="mariadb",
        url=mariadb_url,
        clock="NOW(6)",
        client=lambda: SqlClient("mariadb", connect),
        base=tmp_path,
        restart=mariadb_restart,
    )
    with closing(connect()) as connection, connection.cursor() as statements:
        # The server keeps prepared transactions of an earlier test, also across a restart, and they lock the table.
        statements.execute("XA RECOVER FORMAT='SQL'")
        for *_, name in statements.fetchall():
            statements.execute(f"XA ROLLBACK {name}")
    scene.do(
        "DROP TABLE IF EXISTS p",
        "CREATE TABLE p (id int PRIMARY KEY, v text, at datetime(6))",
        "CREATE OR REPLACE VIEW w AS SELECT * FROM p",
    )
    return scene


@pytest.fixture
def sqlite(tmp_path: Path) -> DatabaseScene:
    path, lock = tmp_path / "p.db", threading.Lock()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, v TEXT, at TEXT)")
    connection.close()
    return DatabaseScene(
        kind="sqlite",
        url="sqlite:///p.db",
        clock="strftime('%Y-%m-%d %H:%M:%f')",
        client=lambda: SqliteClient(str(path), lock),
        base=tmp_path,
    )

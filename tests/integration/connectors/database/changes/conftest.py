"""Databases with a table ``p`` and a view ``w`` of it. A test with the parameter ``kind`` gets that one as ``scene``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_table import SqlClient
from tests.support.database_scene import DatabaseScene, postgresql_scene, sqlite_scene
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.private_servers import mariadb_connection


@pytest.fixture(scope="session")
def postgresql_server_of_tests() -> Iterator[PostgresServer]:
    with postgresql_server("-c max_prepared_transactions=20", "-c deadlock_timeout=50ms") as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server_of_tests: PostgresServer, tmp_path: Path) -> Iterator[DatabaseScene]:
    with closing(postgresql_scene(postgresql_server_of_tests, tmp_path).create_table()) as scene:
        yield scene


@pytest.fixture
def mariadb(mariadb_url: str, mariadb_restart: Callable[[], None] | None, tmp_path: Path) -> Iterator[DatabaseScene]:

    def connect() -> Any:
        # Without gap locks, so that writers of different rows do not wait for each other.
        connection = mariadb_connection(mariadb_url)
        connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return connection

    with closing(connect()) as connection, connection.cursor() as statements:
        # The server keeps prepared transactions of an earlier test, also across a restart, and they lock the table.
        statements.execute("XA RECOVER FORMAT='SQL'")
        for *_, name in statements.fetchall():
            statements.execute(f"XA ROLLBACK {name}")
    scene = DatabaseScene(
        kind="mariadb",
        url=mariadb_url,
        clock="NOW(6)",
        client=lambda: SqlClient("mariadb", connect),
        base=tmp_path,
        restart=mariadb_restart,
    )
    with closing(scene.create_table()):
        yield scene


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[DatabaseScene]:
    with closing(sqlite_scene(tmp_path)) as scene:
        yield scene


@pytest.fixture
def scene(kind: str, request: pytest.FixtureRequest) -> DatabaseScene:
    found: DatabaseScene = request.getfixturevalue(kind)
    return found

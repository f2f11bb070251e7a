"""Transaction ids wrap after 2³²: a server with its next id set by pg_resetwal, before and after the wrap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.changing_table import RestartingReader
from tests.support.database_scene import postgresql_scene
from tests.support.postgres_server import PostgresServer, postgresql_server

BEFORE_WRAP = (1 << 32) - 200
_TRANSACTIONS_OF_A_FILE = 8192 * 4


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with postgresql_server("-c autovacuum=off") as server:
        yield server


def set_next_id(server: PostgresServer, identity: int) -> None:
    """Set the id of the next transaction, as after that number of transactions with a vacuum from time to time."""
    for name in ("postgres", "template1"):
        with server.connect(dbname=name) as connection:
            connection.execute("VACUUM (FREEZE)")
    server.stop()
    file = identity // (_TRANSACTIONS_OF_A_FILE * 32)
    (server.data / "pg_xact" / f"{file:04X}").write_bytes(bytes(32 * 8192))
    server.run("pg_resetwal", "-x", str(identity), "-u", str(identity - 100))
    server.start()


def test_rows_are_found_before_at_and_after_the_wrap(server: PostgresServer, tmp_path: Path) -> None:
    scene = postgresql_scene(server, tmp_path).create_table()
    scene.do(*(f"INSERT INTO p VALUES ({number}, 'old', now())" for number in range(10)))
    set_next_id(server, BEFORE_WRAP)
    reader = RestartingReader(lambda now: scene.reader(now=now), 0)
    reader.poll()
    with server.connect() as connection:
        for turn in range(60):
            for number in range(10):
                connection.execute("UPDATE p SET v = %s WHERE id = %s", (f"turn {turn}", number))
            before = reader.read
            reader.poll()
            assert reader.rows == scene.rows()
            assert reader.read - before == 10
        (epoch,) = connection.execute("SELECT pg_current_xact_id()::text::numeric > 4294967296").fetchone() or (False,)
        assert epoch
    assert reader.whole == 1
    scene.close()


def test_a_server_that_is_restored_from_a_copy_is_read_whole(server: PostgresServer, tmp_path: Path) -> None:
    scene = postgresql_scene(server, tmp_path).create_table()
    server.stop()
    copy = server.data.with_name("copy")
    server.copy(copy)
    server.start()
    scene.do(*(f"INSERT INTO p VALUES ({number}, 'of the lost time', now())" for number in range(20)))
    reader = RestartingReader(lambda now: scene.reader(now=now), 0)
    reader.poll()
    server.stop()
    server.data = copy
    server.start()
    scene.do("INSERT INTO p VALUES (1, 'after', now())")
    reader.poll()
    assert reader.rows == scene.rows()
    assert reader.whole == 2
    scene.close()

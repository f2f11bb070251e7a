"""Eight writers change a table in every awkward way while it is read: at the end no row is missing and none is stale.

The server restarts once meanwhile, and the reader often. ``INGESTD_CHANGES_SEEDS`` and ``INGESTD_CHANGES_SECONDS`` set the number
of seeds and the duration of each run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from connectors.database.changes.method import ChangeMethod
from tests.integration.connectors.database.changes.test_transaction_wrap import set_next_id
from tests.support.changing_table import RestartingReader, SqlClient
from tests.support.database_scene import DatabaseScene
from tests.support.local_zones import create_mariadb_zone, postgresql_zone
from tests.support.postgres_server import postgresql_server
from tests.support.simpler_methods import AfterLastValue, NotVisibleInSnapshot, TimeBelowSnapshotXmin, choose
from tests.support.table_writers import Writers

SEEDS = range(int(os.environ.get("INGESTD_CHANGES_SEEDS", "2")))
SECONDS = float(os.environ.get("INGESTD_CHANGES_SECONDS", "2"))
SLACK = {"slack_seconds": 1.0}
ROUNDS = 20
"""The number of times that a simpler method may be lucky."""

SOURCES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a PostgreSQL table": ("postgresql", {}, "xmin"),
    "a PostgreSQL table at the wrap": ("wrapping", {}, "xmin"),
    "a PostgreSQL view": ("postgresql", {"table": "w", "cursor": "at"} | SLACK, "ended transactions"),
    "a PostgreSQL view of local times": (
        "postgresql_local",
        {"table": "w", "cursor": "at"} | SLACK,
        "ended transactions",
    ),
    "a MariaDB table": ("mariadb", {"cursor": "at"} | SLACK, "ended transactions"),
    "a MariaDB table of local times": ("mariadb_local", {"cursor": "at"} | SLACK, "ended transactions"),
    "a SQLite table": ("sqlite", {}, "data_version"),
}
LOSES = [
    ("postgresql", AfterLastValue),
    ("postgresql", TimeBelowSnapshotXmin),
    ("postgresql", NotVisibleInSnapshot),
    ("mariadb", AfterLastValue),
    ("sqlite", AfterLastValue),
]


def clocks_change(seed: int) -> tuple[datetime, bool]:
    """Return a moment in the middle of the run, and whether the clocks are set back."""
    return datetime.now(UTC) + timedelta(seconds=SECONDS / 2), seed % 2 == 0


@pytest.fixture
def postgresql_local(postgresql: DatabaseScene, seed: int) -> DatabaseScene:
    at, back = clocks_change(seed)
    postgresql.zone = postgresql_zone(at, back=back)
    postgresql.do("DROP VIEW w", "ALTER TABLE p ALTER at TYPE timestamp", "CREATE VIEW w AS SELECT * FROM p")
    return postgresql


@pytest.fixture
def mariadb_local(mariadb: DatabaseScene, seed: int) -> DatabaseScene:
    at, back = clocks_change(seed)
    mariadb.zone = f"Test/{uuid4().hex}"
    client = mariadb.client()
    create_mariadb_zone(client, mariadb.zone, at, back=back)
    client.close()
    return mariadb


@pytest.fixture
def wrapping(tmp_path: Path) -> Iterator[DatabaseScene]:
    """A table of a server that is not restarted: the set transaction id has no history that a recovery could read."""
    settings = ("-c autovacuum=off", "-c max_prepared_transactions=20", "-c deadlock_timeout=50ms")
    with postgresql_server(*settings) as server:
        set_next_id(server, (1 << 32) - 40)
        scene = DatabaseScene(
            kind="postgresql",
            url=server.url,
            clock="now()",
            client=lambda: SqlClient("postgresql", server.connect),
            base=tmp_path,
        )
        scene.do("CREATE TABLE p (id int PRIMARY KEY, v text, at timestamptz)")
        yield scene
        with server.connect() as connection:
            (wrapped,) = connection.execute("SELECT pg_current_xact_id()::text::numeric > 4294967296").fetchone() or (
                0,
            )
        assert wrapped


def run(scene: DatabaseScene, reader: RestartingReader, writers: Writers, *, seconds: float, restart: bool) -> None:
    """Read at random moments while the writers write."""
    ended = threading.Event()

    def restart_server() -> None:
        if restart and scene.restart is not None:
            ended.wait(seconds / 3)
            scene.restart()

    with ThreadPoolExecutor(1) as pool:
        writers.start()
        restarted = pool.submit(restart_server)
        try:
            until = time.monotonic() + seconds
            while time.monotonic() < until or not restarted.done():
                reader.poll_at_random(ended.wait)
        finally:
            writers.stop()
        restarted.result()


def differences(reader: RestartingReader, scene: DatabaseScene, writers: Writers) -> dict[str, tuple[Any, Any]]:
    """Return the rows that are missing or stale: as they were read, and as they are."""
    rows = scene.rows()
    signed = rows.keys() - writers.unsigned
    assert writers.commits > 5
    assert signed
    return {key: (reader.rows.get(key), rows[key]) for key in signed if reader.rows.get(key) != rows[key]}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_row_is_missing_or_stale(source: str, seed: int, request: pytest.FixtureRequest) -> None:
    kind, settings, method = SOURCES[source]
    scene: DatabaseScene = request.getfixturevalue(kind)
    writers = Writers(scene, seed=seed)
    reader = RestartingReader(
        lambda now: scene.reader(now=now, **settings, **({"cursor_timezone": scene.zone} if scene.zone else {})), seed
    )
    run(scene, reader, writers, seconds=SECONDS, restart=True)
    reader.poll()
    assert differences(reader, scene, writers) == {}
    assert writers.disturbed or scene.restart is None
    reader.sweep()
    assert reader.rows == scene.rows()
    assert reader.method == method
    reader.close()


@pytest.mark.parametrize(("kind", "method"), LOSES)
def test_a_simpler_method_loses_rows_of_the_same_writers(
    kind: str, method: type[ChangeMethod], request: pytest.FixtureRequest
) -> None:
    scene: DatabaseScene = request.getfixturevalue(kind)
    for seed in range(ROUNDS):
        writers = Writers(scene, seed=seed)
        reader = RestartingReader(lambda now: scene.reader(now=now, choose=choose(method)), seed)
        run(scene, reader, writers, seconds=2.5, restart=False)
        for _ in range(3):
            reader.poll()
        lost = differences(reader, scene, writers)
        reader.close()
        if lost:
            return
    raise AssertionError(f"{method.__name__} lost no row in {ROUNDS} rounds")

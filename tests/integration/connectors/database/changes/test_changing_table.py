"""Eight writers change a table in every awkward way while it is read: at the end no row is missing and none is stale.

The server restarts once meanwhile, and the reader often. ``INGESTD_CHANGES_SEEDS`` and ``INGESTD_CHANGES_SECONDS`` set the number
of seeds and the duration of each run.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.support.changing_table import Client, RestartingReader
from tests.support.database_scene import DatabaseScene
from tests.support.table_writers import Writers

SEEDS = range(int(os.environ.get("INGESTD_CHANGES_SEEDS", "1")))
SECONDS = float(os.environ.get("INGESTD_CHANGES_SECONDS", "2"))
HALF_A_YEAR = timedelta(days=182)
SLACK = {"slack_seconds": 1.0}

SOURCES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a PostgreSQL table": ("postgresql", {}, "xmin"),
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


def clocks_change() -> datetime:
    """Return a moment in the middle of the run."""
    return datetime.now(UTC) + timedelta(seconds=SECONDS / 2)


def postgresql_zone(at: datetime, *, back: bool) -> str:
    """Return a zone as a POSIX rule: the clocks change at ``at`` (UTC), and the other way half a year later."""
    later = at + HALF_A_YEAR
    start, end = (later, at) if back else (at, later)
    return f"STD0DST-1,{rule(start)},{rule(end + timedelta(hours=1))}"  # an end is written as time of the summer


def create_mariadb_zone(client: Client, name: str, at: datetime, *, back: bool) -> None:
    """Create a zone ``name`` in which the clocks are set back, or forward, at ``at`` (UTC)."""
    before, after = (3600, 0) if back else (0, 3600)
    moment = int(at.timestamp())
    for statement in (
        "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')",
        "SET @zone = LAST_INSERT_ID()",
        f"INSERT INTO mysql.time_zone_name VALUES ('{name}', @zone)",
        f"INSERT INTO mysql.time_zone_transition_type VALUES (@zone, 0, {before}, 0, 'A'), (@zone, 1, {after}, 0, 'B')",
        f"INSERT INTO mysql.time_zone_transition VALUES (@zone, 0, 0), (@zone, {moment}, 1)",
    ):
        client.do(statement)


def rule(moment: datetime) -> str:
    """Return a moment of each year: the day from 0 on, and the time."""
    return f"{moment.timetuple().tm_yday - 1}/{moment:%H:%M:%S}"


@pytest.fixture
def postgresql_local(postgresql: DatabaseScene, seed: int) -> DatabaseScene:
    postgresql.zone = postgresql_zone(clocks_change(), back=seed % 2 == 0)
    postgresql.do("DROP VIEW w", "ALTER TABLE p ALTER at TYPE timestamp", "CREATE VIEW w AS SELECT * FROM p")
    return postgresql


@pytest.fixture
def mariadb_local(mariadb: DatabaseScene, seed: int) -> DatabaseScene:
    mariadb.zone = f"Test/{uuid4().hex}"
    client = mariadb.client()
    create_mariadb_zone(client, mariadb.zone, clocks_change(), back=seed % 2 == 1)
    client.close()
    return mariadb


def run(scene: DatabaseScene, reader: RestartingReader, writers: Writers) -> None:
    """Read at random moments while the writers write."""
    ended = threading.Event()

    def restart_server() -> None:
        restarts: list[Callable[[], object]] = [] if scene.restart is None else [scene.restart, lambda: None]
        for restart in restarts:
            enough = writers.commits + 5
            while writers.commits <= enough and not ended.wait(0.02):
                pass
            restart()

    with ThreadPoolExecutor(1) as pool:
        writers.start()
        restarted = pool.submit(restart_server)
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until or not restarted.done():
                reader.poll_at_random(ended.wait)
        finally:
            ended.set()
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
    run(scene, reader, writers)
    reader.poll()
    assert differences(reader, scene, writers) == {}
    assert writers.disturbed or scene.restart is None
    reader.sweep()
    assert reader.rows == scene.rows()
    assert reader.method == method
    reader.close()

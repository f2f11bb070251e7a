"""A standby is read while eight writers change its primary."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.changing_table import RestartingReader
from tests.support.database_scene import postgresql_scene
from tests.support.postgres_server import PostgresServer, postgresql_server
from tests.support.table_writers import Writers

SECONDS = 1.0
LONGEST_TRANSACTION = 30.0


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with postgresql_server("-c max_prepared_transactions=20", "-c deadlock_timeout=50ms") as primary:
        postgresql_scene(primary, Path()).create_table()
        with primary.standby() as standby:
            yield primary, standby


@pytest.mark.parametrize(
    ("method", "settings"),
    [("xmin", {}), ("lag", {"table": "w", "cursor": "at", "slack_seconds": 1.0, "lag_seconds": LONGEST_TRANSACTION})],
)
def test_rows_of_a_standby_are_followed(
    servers: tuple[PostgresServer, PostgresServer], tmp_path: Path, method: str, settings: dict[str, Any]
) -> None:
    primary, standby = servers
    scene = postgresql_scene(standby, tmp_path)
    reader = RestartingReader(lambda now: scene.reader(now=now, **settings), 1)
    reader.poll()
    writers = Writers(postgresql_scene(primary, tmp_path), seed=1)
    writers.start()
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            reader.poll_at_random(threading.Event().wait)
    finally:
        writers.stop()
    primary.wait_until_replayed(standby)
    whole = reader.whole
    reader.poll()
    rows = scene.rows()
    signed = rows.keys() - writers.unsigned
    assert {key: reader.rows.get(key) for key in signed} == {key: rows[key] for key in signed}
    assert signed
    assert (reader.method, reader.whole) == (method, whole)
    assert ("primary" in reader.improvement) == (method == "lag")
    reader.close()


def test_a_row_of_a_standby_that_is_committed_after_the_lag_is_found_by_the_sweep(
    servers: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    primary, standby = servers
    scene, owner = postgresql_scene(standby, tmp_path), postgresql_scene(primary, tmp_path).client()
    settings: dict[str, Any] = {"table": "w", "cursor": "at", "slack_seconds": 0.0, "lag_seconds": 0.001}
    reader = RestartingReader(lambda now: scene.reader(now=now, **settings), 1)
    owner.do("BEGIN")
    owner.do("INSERT INTO p VALUES (100000, 'late', now())")
    for _ in range(2):
        reader.poll()
    owner.do("COMMIT")
    primary.wait_until_replayed(standby)
    reader.poll()
    assert "100000" not in reader.rows
    reader.sweep()
    assert reader.rows == scene.rows()
    owner.close()
    reader.close()

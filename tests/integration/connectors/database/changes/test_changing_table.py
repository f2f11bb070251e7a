"""Eight writers change a table in every awkward way while it is read: at the end no row is missing and none is stale.

``INGESTD_CHANGES_SEEDS`` and ``INGESTD_CHANGES_SECONDS`` set the number of seeds and the duration of each run.
"""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from tests.support.changing_table import RestartingReader, Writers

SEEDS = range(int(os.environ.get("INGESTD_CHANGES_SEEDS", "2")))
SECONDS = float(os.environ.get("INGESTD_CHANGES_SECONDS", "3"))

SOURCES = {
    "a PostgreSQL table": ("postgresql", {}, "xmin"),
    "a PostgreSQL view": ("postgresql", {"name": "w", "cursor": "at"}, "ended transactions"),
    "a MariaDB table": ("mariadb", {"cursor": "at"}, "ended transactions"),
    "a SQLite table": ("sqlite", {}, "data_version"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_row_is_missing_or_stale(source: str, seed: int, request: pytest.FixtureRequest) -> None:
    kind, settings, method = SOURCES[source]
    scene: Any = request.getfixturevalue(kind)
    writers = Writers("p", scene.clock, scene.client, begin_xa=kind == "mariadb", seed=seed)
    reader = RestartingReader(lambda now: scene.reader(now=now, **settings), seed)
    writers.start()
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            reader.poll_at_random(time.sleep)
    finally:
        writers.stop()
    reader.poll()
    rows = scene.rows()
    signed = rows.keys() - writers.unsigned
    assert writers.commits > 5
    assert signed
    assert {key: reader.rows.get(key) for key in signed} == {key: rows[key] for key in signed}
    reader.sweep()
    assert reader.rows == rows
    assert reader.method == method
    reader.close()

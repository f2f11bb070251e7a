"""A process dies at every statement of a retry, a check, a repair; the next process ends in the exact state."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingestd.mirror.port import RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from tests.contract.mirror_deliverable import SINK
from tests.support.crashing_sqlite import die_at, each_death
from tests.support.desired_entries import desire_all
from tests.support.memory_mirror import Desired

WANTED: Mapping[str, Desired] = {f"k{n}": (f"{n}.0", "scalar") for n in range(6)}
REFUSED = ("k4", "k5")
MEDDLED = {"k0": "0.0", "k1": "of another program", "k3": "3.0", "strange": "9"}
EVERYTHING = Selection()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state file with six entries: two rejected, four delivered."""
    path = tmp_path_factory.mktemp("template") / "state.db"
    mirror = SqliteMirror.open(path)
    desire_all(mirror, SINK, WANTED)
    asyncio.run(refuse(mirror))
    mirror.close()
    return path


async def refuse(mirror: SqliteMirror) -> None:
    claim = await mirror.delivery.claim(1, max_items=100, max_bytes=100_000)
    assert claim is not None
    rejected = [RejectedEntry(key=key, reason="Not today.", status=422) for key in REFUSED]
    delivered = [key for key in WANTED if key not in REFUSED]
    await mirror.delivery.acknowledge_some(claim, delivered=delivered, rejected=rejected)
    await mirror.delivery.release(claim)


async def work(mirror: SqliteMirror) -> None:
    """Retry rejected entries, and undo changes of other programs."""
    check = await mirror.drift.begin_check(1)
    rows = [(key, value, "scalar") for key, value in MEDDLED.items()]
    schema = {"key": pl.String, "value": pl.String, "data_type": pl.String}
    await mirror.drift.show(check, pl.DataFrame(rows, schema=schema, orient="row"))
    await mirror.drift.end_check(check)
    await mirror.rejected.retry(EVERYTHING)
    await mirror.drift.repair(1, ["desires"], remove_added=True)


async def deliver(mirror: SqliteMirror, service: dict[str, str]) -> None:
    while (claim := await mirror.delivery.claim(1, max_items=100, max_bytes=100_000)) is not None:
        for part in claim.parts:
            for item in json.loads(part.body):
                if item.get("delete"):
                    service.pop(item["key"], None)
                else:
                    service[item["key"]] = item["value"]
        await mirror.delivery.acknowledge(claim)


async def read_the_source(mirror: SqliteMirror) -> None:
    desire_all(mirror, SINK, WANTED)


async def check_in_doubt(mirror: SqliteMirror) -> None:
    """Check a sink after its source was read. The state file is not the newest."""
    await read_the_source(mirror)
    check = await mirror.drift.begin_check(1)
    rows = [(key, value, "scalar") for key, value in MEDDLED.items()]
    schema = {"key": pl.String, "value": pl.String, "data_type": pl.String}
    await mirror.drift.show(check, pl.DataFrame(rows, schema=schema, orient="row"))
    await mirror.drift.end_check(check, doubt=True)


def run(work: Callable[[SqliteMirror], Coroutine[Any, Any, None]]) -> Callable[[SqliteMirror], None]:
    """Return a function that runs the coroutine in a loop of its own."""
    return lambda mirror: asyncio.run(work(mirror))


@pytest.mark.parametrize("page", [1, 5_000])
def test_after_a_crash_at_any_statement_the_next_process_ends_in_the_exact_state(
    template: Path, tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.mirror.sqlite.drift.drift_store._PAGE", page)
    monkeypatch.setattr("ingestd.mirror.sqlite.rejections.rejected_store._PAGE", page)
    for crash_point, mirror in each_death(template, tmp_path, run(work)):
        service = dict(MEDDLED)
        asyncio.run(work(mirror))
        asyncio.run(deliver(mirror, service))
        reported = (crash_point.at, crash_point.statement)
        assert service == {key: value for key, (value, _) in WANTED.items()}, reported
        assert (mirror.status.pending(), mirror.status.rejected()) == (0, 0), reported
    assert crash_point.at > 36, "the crash points cover the work"


@pytest.fixture(scope="module")
def older_state_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state file that is older than what was sent, with six delivered entries."""
    path = tmp_path_factory.mktemp("older_state_file") / "state.db"
    mirror = SqliteMirror.open(path)
    mirror.intake.activate(["desires"])
    desire_all(mirror, SINK, WANTED)
    asyncio.run(mirror.delivery.remember_sink(1, workspace_id="w1", sink_id="s1", adopted=True))
    asyncio.run(deliver(mirror, {}))
    mirror.intake.note_pass("desires", began=time.time(), whole=True)
    mirror.close()
    assert _is_read(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO doubt (sink, since, reason) VALUES (1, 0, 'an older copy')")
    return path


def test_after_a_crash_at_any_statement_the_next_process_resolves_the_doubt(
    older_state_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.mirror.sqlite.drift.drift_store._PAGE", 1)
    # Opening the file and reading the source have sweeps of their own.
    first = die_at(older_state_file, tmp_path / "0" / "disk" / "state.db", 1_000_000, run(read_the_source)).count
    for crash_point, mirror in each_death(older_state_file, tmp_path, run(check_in_doubt), after=first):
        service = dict(MEDDLED)
        where = (crash_point.at, crash_point.statement)
        if mirror.status.unexplained(["desires"], limit=1).entries:
            place = tmp_path / str(crash_point.at) / "disk" / "state.db"
            assert not _is_read(place), f"{where}: a key may be removed before the source was read again"
        asyncio.run(check_in_doubt(mirror))
        asyncio.run(deliver(mirror, service))
        assert service == {key: value for key, (value, _) in WANTED.items()} | {"strange": "9"}, where
        assert [one.key for one in mirror.status.unexplained(["desires"], limit=10).entries] == ["strange"], where
        assert (mirror.status.doubts(), mirror.status.pending()) == ([], 0), where
    assert crash_point.at > first + 50, "the crash points cover the work"


def _is_read(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("SELECT read_at IS NOT NULL FROM pipeline").fetchone()[0])

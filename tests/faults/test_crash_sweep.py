"""A run dies before each of its SQLite transactions, and before and after each commit; the next run ends as an undisturbed one.

The scenario has files with repeated keys across batches, files with changed content, unreadable and unaddressable records, and
an archive. Reading, sending and acknowledging all use the crashing connections.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.formats.csv import Csv
from connectors.formats.csv.reader import read_csv
from ingestd.intake import run
from ingestd.intake.entry_sorter import EntrySorter
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Deletes
from tests.support.crash_scenario import CrashScenario, Drop
from tests.support.crashing_sqlite import CrashingConnection, CrashPoint, ProcessDied, copy_database, crashing
from tests.support.document_server import DocumentServer
from tests.support.recorded_workspaced import RecordedWorkspaced

Service = DocumentServer | RecordedWorkspaced
MOST_POINTS = 3000

MASS = Drop(
    name="mass.csv",
    text="part,mass\nP-1,0.10\nP-2,1e-7\nP-1,0.11\n",
    entries=(("P-1", "0.10"), ("P-2", "1e-7"), ("P-1", "0.11")),
)
BAD = Drop(name="bad.csv", text="part,mass\n,1\nP-4,4,four\nP-5,5\n", entries=(("P-5", "5"),), bad=2)
MASS_AGAIN = Drop(
    name="mass.csv",
    text="part,mass\nP-1,0.12\nP-2,1e-7\nP-1,0.13\n",
    entries=(("P-1", "0.12"), ("P-2", "1e-7"), ("P-1", "0.13")),
)
MASS_SHORT = Drop(name="mass.csv", text="part,mass\nP-1,0.10\nP-6,6\n", entries=(("P-1", "0.10"), ("P-6", "6")))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory if the system supports it: a thousand runs would otherwise wait for a disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="ingestd-test-") as name:
        yield Path(name)


@pytest.fixture
def document() -> Iterator[DocumentServer]:
    with DocumentServer() as server:
        yield server


@pytest.fixture
def workspaced(folder: Path) -> Iterator[RecordedWorkspaced]:
    with RecordedWorkspaced(folder / "workspaced") as service:
        yield service


def crash_and_finish(scenario: CrashScenario, crash_point: CrashPoint) -> None:
    """Run until the crash point, then finish with ordinary connections."""
    factory = crashing(crash_point)
    scenario.service.forget_requests()
    try:
        scenario.run(factory)
    except BaseException as error:
        if not _died(error):
            raise
        for connection in factory.opened:
            connection.close()
        if scenario.crashes == 0:
            scenario.keep_crashed_state()  # while the file was being opened
        scenario.run()
    scenario.check(more_writes=1 if crash_point.reached else 0)


def _died(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_died(one) for one in error.exceptions)
    return isinstance(error, ProcessDied)


def outside(folder: Path, service: Service) -> object:
    """Return what a run leaves beside its state file: files, and requests that changed something."""
    return [names for _, _, names in os.walk(folder)], len(service.accepted())


def sweep(folder: Path, service: Service, *steps: tuple[Drop, ...], deletes: Deletes = "keep") -> int:
    """Run every crash point, and the undisturbed run last; return the number of points of that run."""
    workspace = service.workspace("Sweep")
    empty = folder / "ingestd.db"
    SqliteMirror.open(empty).close()
    for at in range(1, MOST_POINTS):
        place = folder / f"{at}"
        crash_point = CrashPoint(at, outside=lambda place=place: outside(place, service))  # type: ignore[misc]
        scenario = CrashScenario(
            folder=place,
            empty=empty,
            service=service,
            workspace=workspace,
            label=f"Point {at}",
            steps=steps,
            deletes=deletes,
        )
        try:
            crash_and_finish(scenario, crash_point)
        except BaseException as error:
            error.add_note(f"died at point {at}: {crash_point.statement.strip()[:200]}")
            raise
        if not crash_point.reached:
            return crash_point.count
    raise AssertionError(f"no end after {MOST_POINTS} points")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_crash_at_any_point_ends_in_the_exact_state_with_single_requests(
    folder: Path, document: DocumentServer
) -> None:
    assert sweep(folder, document, (MASS, BAD), (MASS_AGAIN,)) > 60


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_crash_at_any_point_ends_in_the_exact_state_with_bulk(folder: Path, workspaced: RecordedWorkspaced) -> None:
    assert sweep(folder, workspaced, (MASS, BAD), (MASS_SHORT,), deletes="remove") > 80


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_crash_at_any_point_of_a_sorted_reading_ends_in_the_exact_state(
    folder: Path, workspaced: RecordedWorkspaced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_ENTRIES_UNSORTED", 0)
    monkeypatch.setattr(run, "_ENTRIES_IN_COMMIT", 1)
    monkeypatch.setattr("connectors.directory.file_source._SMALL_BYTES", -1)  # a small file is stored unsorted, at once
    monkeypatch.setattr(Csv, "read", lambda _, file, name: read_csv(file, name, block_bytes=16))  # as is a single batch
    sorted_pieces = []
    monkeypatch.setattr(
        EntrySorter, "add", lambda sorter, entries, add=EntrySorter.add: sorted_pieces.append(add(sorter, entries))
    )
    assert sweep(folder, workspaced, (MASS,), (MASS_SHORT,), deletes="remove") > 60
    assert sorted_pieces


def test_a_crash_at_any_point_of_the_creation_leaves_a_state_file_that_can_be_opened(folder: Path) -> None:
    for at in range(1, MOST_POINTS):
        crash_point = CrashPoint(at)
        factory = crashing(crash_point)
        created, crashed = folder / f"{at}" / "ingestd.db", folder / f"{at}" / "crashed" / "ingestd.db"
        created.parent.mkdir()
        try:
            SqliteMirror.open(created, factory=factory).close()
        except ProcessDied:
            for connection in factory.opened:
                connection.close()
        else:
            assert at > 20
            return
        copy_database(created, crashed)
        mirror = SqliteMirror.open(crashed)
        mirror.intake.activate(["sweep"])
        assert mirror.status.pipelines()[0].name == "sweep"
        mirror.close()
    raise AssertionError(f"no end after {MOST_POINTS} points")


def test_a_crashed_connection_executes_nothing(tmp_path: Path) -> None:
    """The sweep requires that a crash is final for all connections of the process. An INSERT in a transaction is no point."""
    crash_point = CrashPoint(3)
    factory = crashing(crash_point)
    first, second = (sqlite3.connect(tmp_path / "a.db", isolation_level=None, factory=factory) for _ in range(2))
    first.execute("CREATE TABLE t (x)")
    first.execute("BEGIN")
    first.execute("INSERT INTO t VALUES (1)")
    for connection, statement in ((first, "COMMIT"), (first, "ROLLBACK"), (second, "SELECT 1")):
        with pytest.raises(ProcessDied):
            connection.execute(statement)
    assert isinstance(first, CrashingConnection)
    assert (crash_point.statement, first.in_transaction) == ("COMMIT", True)
    for connection in factory.opened:
        connection.close()

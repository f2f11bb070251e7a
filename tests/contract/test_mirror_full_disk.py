"""A state file that is temporarily unwritable: deliveries are not repeated and are recorded later."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ingestd.core.errors import MirrorCorrupt, MirrorError, MirrorFull
from ingestd.mirror.port import RejectedEntry
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.state_file.failures import failure_of
from tests.contract.mirror_deliverable import SINK
from tests.support.desired_entries import desire_all


class FullDisk(sqlite3.Connection):
    """Rejects every commit while ``full``, as SQLite does on a full disk; also what a batch holds while ``spills``."""

    full: ClassVar[bool] = False
    spills: ClassVar[bool] = False

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if (self.full and sql == "COMMIT") or (self.spills and sql == "RELEASE part_of_batch"):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return super().execute(sql, *parameters)


@asynccontextmanager
async def mirror_of(path: Path, entries: int) -> AsyncIterator[tuple[SqliteMirror, type[FullDisk]]]:
    disk = type("Disk", (FullDisk,), {})
    mirror = SqliteMirror.open(path, factory=disk)
    try:
        desire_all(mirror, SINK, {f"K-{number}": (str(number), "text") for number in range(entries)})
        yield mirror, disk
    finally:
        await asyncio.to_thread(mirror.close)


async def test_deliveries_on_a_full_disk_are_not_claimed_again_and_are_recorded_when_space_is_freed(
    tmp_path: Path,
) -> None:
    async with mirror_of(tmp_path / "ingestd.db", 3) as (mirror, disk):
        recorded, reports = asyncio.Event(), list[str]()
        loop = asyncio.get_running_loop()

        def on_recorded() -> None:
            loop.call_soon_threadsafe(recorded.set)

        mirror.on_acknowledged = on_recorded
        mirror.on_unwritable = reports.append
        mirror.on_writable = lambda: reports.append("writable")
        claim = await mirror.delivery.claim(1, max_items=10, max_bytes=10_000)
        assert claim is not None
        disk.full = True
        await mirror.delivery.acknowledge(claim)
        assert mirror.status.pending() == 3  # the file is unchanged
        assert await mirror.delivery.claim(1, max_items=10, max_bytes=10_000) is None
        with pytest.raises(MirrorFull):
            await mirror.delivery.remember_sink(1, workspace_id="w", sink_id="s", adopted=True)
        assert len(reports) == 1
        assert "is full" in reports[0]
        disk.full = False
        await asyncio.wait_for(recorded.wait(), 60)
        assert mirror.status.pending() == 0
        assert reports[1:] == ["writable"]


async def test_a_batch_that_is_rolled_back_is_not_reported_as_written(tmp_path: Path) -> None:
    async with mirror_of(tmp_path / "ingestd.db", 3) as (mirror, disk):
        reports: list[str] = []
        mirror.on_unwritable = reports.append
        mirror.on_writable = lambda: reports.append("writable")
        disk.spills = True
        with mirror.intake.batch("desires"), pytest.raises(MirrorFull):
            desire_all(mirror, SINK, {"K-9": ("9", "text")})
        assert ["is full" in one for one in reports] == [True]
        assert "is full" in mirror.unwritable
        disk.spills = False
        with mirror.intake.batch("desires"):
            desire_all(mirror, SINK, {"K-9": ("9", "text")})
        assert reports[1:] == ["writable"]


async def test_the_rest_of_a_claim_is_claimable_only_after_its_acknowledged_part_is_recorded(
    tmp_path: Path,
) -> None:
    async with mirror_of(tmp_path / "ingestd.db", 3) as (mirror, disk):
        claim = await mirror.delivery.claim(1, max_items=10, max_bytes=10_000)
        assert claim is not None
        disk.full = True
        rejected = [RejectedEntry(key="K-1", reason="It is refused.")]
        await mirror.delivery.acknowledge_some(claim, delivered=["K-0"], rejected=rejected)
        await mirror.delivery.release(claim)
        assert await mirror.delivery.claim(1, max_items=10, max_bytes=10_000) is None
        disk.full = False
        await mirror.delivery.remember_sink(1, workspace_id="w", sink_id="s", adopted=True)
        rest = await mirror.delivery.claim(1, max_items=10, max_bytes=10_000)
        assert rest is not None
        assert (rest.items, b"K-2" in rest.parts[0].body) == (1, True)
        assert mirror.status.rejected() == 1


async def test_deliveries_that_were_never_recorded_are_pending_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "ingestd.db"
    async with mirror_of(path, 3) as (mirror, disk):
        claim = await mirror.delivery.claim(1, max_items=10, max_bytes=10_000)
        assert claim is not None
        disk.full = True
        await mirror.delivery.acknowledge(claim)
    observer = SqliteMirror.observe(path)
    assert observer.pending() == 3
    observer.close()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("SQLITE_FULL", MirrorFull, "is full. Free some space"),
        ("SQLITE_IOERR_WRITE", MirrorFull, "cannot be used at the moment"),
        ("SQLITE_IOERR_FSYNC", MirrorFull, "kernel's log"),
        ("SQLITE_IOERR_SHMSIZE", MirrorFull, "cannot be used at the moment"),
        ("SQLITE_IOERR_CORRUPTFS", MirrorCorrupt, "is damaged"),
        ("SQLITE_CANTOPEN", MirrorFull, "cannot be used at the moment"),
        ("SQLITE_READONLY", MirrorFull, "cannot be used at the moment"),
        ("SQLITE_READONLY_DBMOVED", MirrorFull, "was moved, replaced or removed"),
        ("SQLITE_CORRUPT", MirrorCorrupt, "Move it away"),
        ("SQLITE_NOTADB", MirrorCorrupt, "is damaged"),
        ("SQLITE_BUSY", MirrorFull, "locked by another program"),
        ("SQLITE_LOCKED", MirrorFull, "locked by another program"),
        ("SQLITE_PROTOCOL", MirrorFull, "locked by another program"),
        ("SQLITE_PERM", MirrorFull, "cannot be used at the moment"),
        ("SQLITE_AUTH", MirrorFull, "cannot be used at the moment"),
        ("SQLITE_NOLFS", MirrorError, "'ingestd check'"),
    ],
)
def test_every_failure_of_sqlite_has_a_sentence_with_the_next_step(
    tmp_path: Path, name: str, kind: type[MirrorError], words: str
) -> None:
    error = sqlite3.OperationalError("a message of SQLite")
    error.sqlite_errorcode = getattr(sqlite3, name)
    error.sqlite_errorname = name
    failure = failure_of(error, tmp_path / "ingestd.db", opened=True)
    assert type(failure) is kind
    assert words in str(failure)
    assert str(tmp_path / "ingestd.db") in str(failure)


@pytest.mark.parametrize("name", ["SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH"])
def test_a_file_that_cannot_be_opened_is_reported_with_owner_and_mode(tmp_path: Path, name: str) -> None:
    error = sqlite3.OperationalError("a message of SQLite")
    error.sqlite_errorcode = getattr(sqlite3, name)
    failure = failure_of(error, tmp_path / "ingestd.db", opened=False)
    assert type(failure) is MirrorError
    assert "Check the owner and mode" in str(failure)


def test_an_error_in_a_statement_is_not_converted(tmp_path: Path) -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError) as found:
        connection.execute("SELEKT 1")
    connection.close()
    assert failure_of(found.value, tmp_path / "ingestd.db", opened=True) is None

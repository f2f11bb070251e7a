"""A changed file leaves the same state, with every location, if only its new sections or the whole file is read."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.file import FileConnector, FileOptions
from connectors.files.file_batches import OpenFile
from connectors.formats.csv import Csv
from connectors.formats.csv.reader import read_csv
from ingestd.core.address import SinkAddress
from ingestd.core.contract import Contract
from ingestd.core.errors import SourceBroken
from ingestd.core.guard import Guard
from ingestd.core.mapping import EntrySpec
from ingestd.core.mapping import Mapping as EntryMapping
from ingestd.core.record import Batch, Deletes, Partition, Section
from ingestd.intake import PassReport, Reader
from ingestd.intake.difference import Difference
from ingestd.mirror.port import RunSummary
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from ingestd.sdk.formats.record_chunk import RecordChunk
from ingestd.telemetry import Event
from tests.property.test_csv_sections import EDITS, LINES, PLAIN, Edit, edited

_TABLES = {
    "entry": "key, value, data_type, removed, partition, run, row_hash, position",
    "run": "id, partition, records, created, updated, unchanged, removed, rejected, failure, facts",
    "rejected": "subject, run, key, value, position, row_hash, field, reason, record, times",
    "former": "*",
}
KEYS = EntryMapping([EntrySpec(key="{name}", value="{value}")])
BODIES = st.lists(st.one_of(PLAIN, PLAIN, PLAIN, PLAIN, LINES), max_size=30)
STEPS = st.lists(st.one_of(EDITS, EDITS, st.just("retry"), st.just("touch")), min_size=1, max_size=4)


def _read_small_sections(_: Csv, file: BinaryIO, name: str, known: Mapping[bytes, int]) -> Iterator[RecordChunk]:
    return read_csv(file, name, encoding="utf-8", known=known, section_bytes=20, block_bytes=100)


@contextmanager
def small_sections(file_bytes: int) -> Iterator[None]:
    """Compare the sections of files with at least ``file_bytes``."""
    with (
        patch.object(Csv, "read_sections", _read_small_sections),
        patch.object(Csv, "read", lambda _, file, name: read_csv(file, name, encoding="utf-8")),
        patch("connectors.files.file_batches.SECTIONS_BYTES", file_bytes),
    ):
        yield


class Site:
    """A pipeline over a file, with a state file of its own. ``by_sections``: only new sections are read."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        by_sections: bool,
        deletes: Deletes = "remove",
        guard: Guard | None = None,
        mapping: EntryMapping = KEYS,
        contract: Contract | None = None,
    ) -> None:
        self.path = folder / f"{name}.db"
        self.by_sections = by_sections
        self.mirror = SqliteMirror.open(self.path, now=lambda: 0.0)
        self.mirror.intake.activate(["pipe"])
        self.events: list[Event] = []
        self.parsed: list[int] = []
        options = FileOptions(path=folder / "parts.csv", settle_seconds=0, deletes=deletes)
        self.connector = FileConnector(options, SourceContext(pipeline="pipe", base=folder, now=lambda: 0.0))
        self.reader = Reader(
            pipeline="pipe", connector=self.connector, mapping=mapping, mirror=self.mirror.intake, contract=contract,
            sink=SinkAddress(workspace="w", by="label", name="s"), emit=self.events.append, guard=guard or Guard(),
            folder=folder,
        )  # fmt: skip

    def read(self) -> list[RunSummary]:
        """Read the file if it changed."""
        return list(self.read_pass().read)

    def read_pass(self) -> PassReport:
        with small_sections(0 if self.by_sections else 2**40):
            return self.reader.read_pass()

    def retry(self) -> None:
        asyncio.run(self.mirror.rejected.retry(Selection()))
        self.reader.remap()

    def state(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return the rows of the tables that users see, and the row hashes of the last reading."""
        with closing(sqlite3.connect(self.path)) as database:
            found = {
                table: sorted(database.execute(f"SELECT {columns} FROM {table}").fetchall(), key=repr)
                for table, columns in _TABLES.items()
            }
        state = self.mirror.intake.open_partition(
            "pipe", Partition(name="parts.csv"), self.reader.sink, self.reader.digest
        )
        found["snapshot"] = sorted(state.snapshot().hashes.series().to_list()) if state.snapshot is not None else []
        return found

    def entries(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self.state()["entry"] if not row[3]}


@given(
    before=BODIES,
    steps=STEPS,
    deletes=st.sampled_from(["keep", "remove"]),
    guard=st.sampled_from([Guard(), Guard(types=True), Guard(removed_percent=50, minimum=3)]),
    in_memory=st.sampled_from([3, 2_000_000]),
    scans=st.sampled_from([0, 4]),
)
def test_a_reading_by_sections_leaves_the_state_of_a_complete_one(
    *, before: list[bytes], steps: list[list[Edit] | str], deletes: Deletes, guard: Guard, in_memory: int, scans: int
) -> None:
    with (
        tempfile.TemporaryDirectory() as base,
        patch("ingestd.intake.difference._IN_MEMORY", in_memory),
        patch("ingestd.intake.difference._SCANS", scans),
    ):
        folder = Path(base)
        sites = [
            Site(folder, name, by_sections=name == "sections", deletes=deletes, guard=guard) for name in ("whole", "sections")
        ]  # fmt: skip
        lines = before
        for version, step in enumerate([[], *steps], start=1):
            if step == "retry":
                for site in sites:
                    site.retry()
            elif step != "touch":
                assert not isinstance(step, str)
                lines = edited(lines, step)
            write(folder, lines, version)
            whole, by_sections = (site.read() for site in sites)
            assert by_sections == whole
            assert sites[1].state() == sites[0].state()
        # A rejected record may keep entries that a first reading does not make.
        is_complete = not sites[1].mirror.status.rejections(limit=1)
        if deletes == "remove" and guard == Guard() and sites[1].entries() and is_complete:
            fresh = Site(folder, "fresh", by_sections=False)
            fresh.read()
            assert sites[1].entries() == fresh.entries()
            fresh.mirror.close()
        for site in sites:
            site.mirror.close()


def write(folder: Path, lines: list[bytes], version: int) -> None:
    (folder / "parts.csv").write_bytes(b"name,value\n" + b"".join(lines))
    os.utime(folder / "parts.csv", (version, version))


def lines_of(count: int) -> list[bytes]:
    return [b"part-%d,%d\n" % (number, number) for number in range(count)]


def count_parsed(site: Site) -> list[int]:
    """Return a list that receives the number of records of each batch that was read."""
    parsed: list[int] = []
    read = site.connector._read_once

    def counted(*arguments: Any) -> Iterator[Batch]:
        for batch in read(*arguments):
            parsed.append(batch.records.height)
            yield batch

    site.connector._read_once = counted  # type: ignore[assignment, method-assign]
    return parsed


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, "state", by_sections=True)
    yield made
    made.mirror.close()


def test_only_new_sections_are_read(tmp_path: Path, site: Site) -> None:
    parsed = count_parsed(site)
    write(tmp_path, lines_of(500), 1)
    site.read()
    assert sum(parsed) == 500
    parsed.clear()
    write(tmp_path, edited(lines_of(500), [Edit(kind="insert", at=200, line=b"new,7\n", to=0)]), 2)
    (summary,) = site.read()
    assert (summary.records, summary.created, summary.removed) == (501, 1, 0)
    assert sum(parsed) < 50
    assert [row[-1] for row in site.state()["entry"] if row[0] == "new"] == [202]


def test_the_row_hashes_of_an_unchanged_file_are_not_loaded(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, lines_of(500), 1)
    site.read()
    loaded: list[int] = []
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.partition_opener.load_snapshot", lambda *_: loaded.append(1))
    assert site.read() == []
    write(tmp_path, lines_of(500), 2)
    assert [one.records for one in site.read()] == [0], "it was written again with the same content"
    assert not loaded


def test_a_file_that_changes_while_it_is_read_is_not_stored(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, lines_of(500), 1)
    site.read()
    before = site.state()
    content = OpenFile.sha256

    def change_after(opened: OpenFile) -> str:
        digest = content(opened)
        status = (tmp_path / "parts.csv").stat()
        with (tmp_path / "parts.csv").open("r+b") as file:
            file.seek(100)
            file.write(b"9")
        os.utime(tmp_path / "parts.csv", ns=(status.st_atime_ns, status.st_mtime_ns))
        return digest

    monkeypatch.setattr(OpenFile, "sha256", change_after)
    write(tmp_path, [*lines_of(500), b"new,1\n"], 2)
    report = site.read_pass()
    assert "changed while it was read" in report.away or "written to while it was read" in report.away
    assert site.state()["entry"] == before["entry"]
    monkeypatch.undo()
    write(tmp_path, [*lines_of(500), b"new,1\n"], 3)
    site.read()
    assert len(site.entries()) == 501


@pytest.mark.parametrize("reason", ["mapping", "facts", "contract", "header"])
def test_the_whole_file_is_read_if_more_than_the_records_decides(tmp_path: Path, reason: str) -> None:
    first = Site(tmp_path, "state", by_sections=True)
    write(tmp_path, lines_of(500), 1)
    first.read()
    first.mirror.close()
    spec = EntrySpec(key="{name}", value="{value} {file.mtime}" if reason == "facts" else "{value}!")
    second = Site(
        tmp_path, "state", by_sections=True,
        mapping=EntryMapping([spec]) if reason in {"mapping", "facts"} else KEYS,
        contract=Contract(columns={}) if reason == "contract" else None,
    )  # fmt: skip
    for version in (2, 3):
        parsed = count_parsed(second)
        write(tmp_path, [*lines_of(500), b"new,%d\n" % version], version)
        if reason == "header":
            content = (tmp_path / "parts.csv").read_bytes()
            (tmp_path / "parts.csv").write_bytes(content.replace(b"name,value", b"value,name,", 1))
        second.read()
        if version == 2 or reason in {"facts", "contract"}:
            assert sum(parsed) == (0 if reason == "header" else 501)
    second.mirror.close()


def test_a_retry_maps_a_record_of_a_known_section_again(tmp_path: Path, site: Site) -> None:
    write(tmp_path, [*lines_of(100), b",1\n", *lines_of(200)[100:]], 1)
    site.read()
    site.retry()
    site.read()
    assert [row[-1] for row in site.state()["rejected"]] == [2]


def test_sections_that_do_not_fit_the_records_are_a_broken_source() -> None:

    hashes = pl.Series("row_hash", [1, 2], dtype=pl.UInt64)
    for sections in ([Section(digest=b"", records=3)], [Section(digest=b"x", records=4, known=True)]):
        with pytest.raises(SourceBroken, match="sections that do not fit"):
            Difference(None).mask_new(hashes, sections)

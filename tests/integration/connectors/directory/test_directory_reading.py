"""The result of reading a file: its records, its hash, and nothing if it is unchanged."""

import hashlib
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import openpyxl
import psutil
import pytest

from connectors.directory import DirectoryConnector
from connectors.directory.local_folder import LocalFile
from connectors.formats import RecordChunk
from connectors.formats.csv import Csv
from connectors.formats.csv.reader import read_csv
from ingestd.sdk import Partition, SourceUnavailable
from ingestd.sdk.formats import record_chunk as chunk_module
from ingestd.sdk.formats.parser_process.pool import SHARED
from ingestd.sdk.formats.parser_process.process import ParserProcess
from ingestd.sdk.testing import acknowledgement
from tests.support.file_flow import FileFlow
from tests.support.watched_files import Drop, read_all


def test_a_file_is_one_snapshot_with_its_facts(drop: Drop) -> None:
    path = drop.write("sub/run 7.csv", "part,mass\nA,0.10\nB\n00417,1e-7\n")
    os.utime(path, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    (batch,) = read_all(drop.connector(recursive=True), "sub/run 7.csv")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert batch.last
    assert batch.header
    assert batch.records.rows() == [("A", "0.10"), ("00417", "1e-7")]
    assert batch.positions.to_list() == [2, 4]
    assert [reject.position for reject in batch.rejects] == [3]
    status = path.stat()
    assert batch.cursor == {
        "device": status.st_dev,
        "inode": status.st_ino,
        "size": status.st_size,
        "mtime_ns": 1_700_000_000_123_456_789,
        "ctime_ns": status.st_ctime_ns,
        "sha256": digest,
    }
    assert {key: value for key, value in batch.facts.items() if key != "file.owner"} == {
        "file.name": "run 7.csv",
        "file.stem": "run 7",
        "file.path": "sub/run 7.csv",
        "file.size": str(status.st_size),
        "file.mtime": "2023-11-14T22:13:20.123456+00:00",
        "file.sha256": digest,
        "file.encoding": "utf-8",
        "file.delimiter": "comma",
        "file.header_row": "1",
    }
    assert batch.facts["file.owner"]


def test_ndjson_is_recognised_by_its_suffix_or_configured(drop: Drop) -> None:
    drop.write("a.ndjson", '{"a": 0.10}\n')
    drop.write("b.log", '{"a": 0.10}\n')
    assert read_all(drop.connector(), "a.ndjson")[0].records.rows() == [("0.10",)]
    assert read_all(drop.connector(pattern="*.log", format="ndjson"), "b.log")[0].records.rows() == [("0.10",)]


def test_an_unchanged_file_is_not_opened(drop: Drop, monkeypatch: pytest.MonkeyPatch) -> None:
    drop.write("a.csv")
    connector = drop.connector()
    cursor = json.loads(json.dumps(read_all(connector, "a.csv")[-1].cursor))
    monkeypatch.delattr(LocalFile, "open")
    assert read_all(connector, "a.csv", cursor) == []


def test_a_touched_file_with_equal_content_is_reported_as_unchanged(drop: Drop) -> None:
    path = drop.write("a.csv")
    connector = drop.connector()
    cursor = read_all(connector, "a.csv")[-1].cursor
    os.utime(path, (5000, 5000))
    (batch,) = read_all(connector, "a.csv", cursor)
    assert batch.unchanged
    assert batch.last
    assert batch.records.height == 0
    assert batch.cursor == {**cursor, "mtime_ns": 5000 * 10**9, "ctime_ns": path.stat().st_ctime_ns}
    assert read_all(connector, "a.csv", batch.cursor) == []
    assert read_all(connector, "a.csv")[0].records.height == 1


def test_changed_content_is_read_whole(drop: Drop) -> None:
    connector = drop.connector()
    drop.write("a.csv")
    cursor = read_all(connector, "a.csv")[-1].cursor
    drop.write("a.csv", "part,mass\nA,0.10\nB,2\n")
    (batch,) = read_all(connector, "a.csv", cursor)
    assert batch.records.height == 2


@pytest.fixture
def many_blocks(drop: Drop, monkeypatch: pytest.MonkeyPatch) -> DirectoryConnector:
    monkeypatch.setattr(Csv, "read", lambda _, file, name: read_csv(file, name, block_bytes=64))
    drop.write("a.csv", "part,mass\n" + "".join(f"P{i},{i}\n" for i in range(100)))
    connector: DirectoryConnector = drop.connector()
    return connector


def test_only_the_last_cursor_marks_the_file_as_read(many_blocks: DirectoryConnector) -> None:
    batches = read_all(many_blocks, "a.csv")
    assert len(batches) > 3
    assert [batch.last for batch in batches] == [False] * (len(batches) - 1) + [True]
    for batch in batches[:-1]:
        assert sum(again.records.height for again in read_all(many_blocks, "a.csv", batch.cursor)) == 100
        many_blocks.acknowledge(Partition(name="a.csv"), batch.cursor, acknowledgement())
    assert [p.name for p in many_blocks.partitions()] == ["a.csv"]
    assert read_all(many_blocks, "a.csv", batches[-1].cursor) == []


def test_a_file_that_changes_during_reading_is_not_marked_as_read(drop: Drop, many_blocks: DirectoryConnector) -> None:
    batches = many_blocks.read(Partition(name="a.csv"), None)
    taken = [next(batches)]
    with (drop.folder / "a.csv").open("a") as file:
        file.write("late,1\n")
    with pytest.raises(SourceUnavailable, match=r"a\.csv was written to while it was read"):
        taken += batches
    assert not any(batch.last for batch in taken)


def test_a_change_with_an_unchanged_time_is_found_by_the_hash(drop: Drop, many_blocks: DirectoryConnector) -> None:
    path = drop.folder / "a.csv"
    with path.open("a") as file:  # more than is read in advance to detect the encoding
        file.write(f"P,{'1' * 1000}\n" * 2_000)
    status = path.stat()
    batches = many_blocks.read(Partition(name="a.csv"), None)
    next(batches)
    with path.open("r+b") as file:
        file.seek(-3, 2)
        file.write(b"XX\n")
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    with pytest.raises(SourceUnavailable, match="changed while it was read"):
        list(batches)


def test_a_file_that_is_replaced_during_reading_is_read_as_it_was(drop: Drop, many_blocks: DirectoryConnector) -> None:
    batches = many_blocks.read(Partition(name="a.csv"), None)
    taken = [next(batches)]
    (drop.base / "new.csv").write_text("part,mass\nZ,9\n")
    (drop.base / "new.csv").replace(drop.folder / "a.csv")
    taken += batches
    assert sum(batch.records.height for batch in taken) == 100
    assert read_all(many_blocks, "a.csv", taken[-1].cursor)[0].records.rows() == [("Z", "9")]


def test_a_missing_file_has_no_batches(drop: Drop) -> None:
    drop.write("a.csv").unlink()
    assert read_all(drop.connector(), "a.csv") == []
    assert chunk_module.BLOCK_BYTES <= chunk_module.RECORD_BYTES


def test_a_hanging_parser_does_not_delay_the_shutdown(
    open_flow: Callable[..., FileFlow], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, parse = threading.Event(), ParserProcess.parse

    def observed(process: ParserProcess, order: Any, descriptor: int) -> Iterator[RecordChunk]:
        begun.set()
        return parse(process, order, descriptor)

    flow = open_flow()
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in (["part", "mass"], ["A", 1]):
        book.worksheets[0].append(row)
    book.save(out)
    flow.write("a.xlsx", out.getvalue())
    flow.pass_once()
    assert flow.held == {"A": "1"}
    hung = [psutil.Process(pid) for pid in SHARED.processes()]
    assert hung
    for process in hung:
        process.suspend()
    try:
        monkeypatch.setattr(ParserProcess, "parse", observed)
        flow.write("b.xlsx", out.getvalue() + b"\0")
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(flow.reader.read_pass)
            assert begun.wait(60)
            flow.reader.stop()
            report = reading.result(60)
    finally:
        for process in hung:
            with suppress(psutil.NoSuchProcess):
                process.resume()
    assert report.read == ()
    assert report.rejected == ()

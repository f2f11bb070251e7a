"""Workbooks and Parquet are parsed in a child process; if it dies, only one file is affected."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import openpyxl
import psutil
import pytest

from connectors.formats import Format, RecordChunk
from connectors.formats.columnar import Parquet
from connectors.formats.excel import Excel
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.sdk.formats.parser_process import ParserLimits, ParserPool, Parsers
from tests.support.parser_formats import Misbehaving
from tests.support.workbook_bytes import xls

_SAFETY_SECONDS = 60


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    pool = ParserPool()
    yield pool
    pool.close()


def read(file_format: Format, pool: ParserPool, data: bytes = b"x", name: str = "a.odd") -> list[RecordChunk]:
    return list(file_format.with_parsers(Parsers(pool)).read(io.BytesIO(data), name))


def workbook(cell: str = "A2") -> bytes:
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.worksheets[0]["A1"] = "part"
    book.worksheets[0][cell] = "A"
    book.save(out)
    return out.getvalue()


HEADER_AND_ZEROS = xls([["part"]])[:512] + bytes(512)
ITS_CHAIN_OF_SECTORS_HAS_NO_END = xls([["part"]])[:512] + bytes(512) + xls([["part"]])[1024:]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HEADER_AND_ZEROS, r"a\.xls holds no workbook"),
        (ITS_CHAIN_OF_SECTORS_HAS_NO_END, r"a\.xls can't be read: parsing it needs more than 3072 MiB of memory"),
    ],
)
def test_an_xls_with_a_zeroed_part_is_reported_in_one_sentence(pool: ParserPool, data: bytes, words: str) -> None:
    with pytest.raises(SourceBroken, match=words + ".*save it again"):
        read(Excel(), pool, data, "a.xls")
    assert read(Excel(), pool, workbook(), "b.xlsx")[0].records.rows() == [("A",)]


def test_a_single_cell_in_the_last_corner_is_reported_in_one_sentence(pool: ParserPool) -> None:
    with pytest.raises(SourceBroken, match=r"a\.xlsx can't be read: parsing it needs more than 3072 MiB of memory"):
        read(Excel(), pool, workbook("XFD1048576"), "a.xlsx")


def test_damaged_parquet_is_reported_in_one_sentence(pool: ParserPool) -> None:
    with pytest.raises(SourceBroken, match=r"a\.parquet can't be read as Parquet"):
        read(Parquet(), pool, b"PAR1" + bytes(100) + b"\xff\xff\xff\x7fPAR1", "a.parquet")


@pytest.mark.parametrize(
    ("then", "limits", "words"),
    [
        ("allocate", ParserLimits(memory_bytes=2**28), "parsing it needs more than 256 MiB of memory"),
        ("spin", ParserLimits(cpu_seconds=0), "takes more than 0 seconds of processor time"),
        ("abort", ParserLimits(), "its parser failed, it ended with signal SIGABRT"),
        ("raise", ParserLimits(), "its parser failed, LookupError: no such sheet"),
    ],
)
def test_the_death_of_the_parser_rejects_the_file_and_the_next_one_is_read(
    then: str, limits: ParserLimits, words: str
) -> None:
    pool = ParserPool(limits)
    try:
        with pytest.raises(SourceBroken, match=rf"a\.odd can't be read: .*{words}.*save it again"):
            read(Misbehaving(then=then), pool)
        assert len(read(Misbehaving(), pool)) == 1
    finally:
        pool.close()


def test_a_process_is_started_on_demand_and_parses_many_files(pool: ParserPool) -> None:
    assert pool.processes() == ()
    first, second = read(Misbehaving(), pool), read(Misbehaving(), pool)
    assert first[0].records.rows() == second[0].records.rows() == [(str(pool.processes()[0]),)]


def test_a_rejected_file_does_not_end_the_process(pool: ParserPool) -> None:
    with pytest.raises(SourceBroken, match="has no sheet"):
        read(Excel(sheet="Masses"), pool, workbook(), "a.xlsx")
    (before,) = pool.processes()
    read(Excel(), pool, workbook(), "a.xlsx")
    assert pool.processes() == (before,)


def test_an_idle_process_ends_after_some_time() -> None:
    pool = ParserPool(ParserLimits(idle_seconds=0))
    pid = int(read(Misbehaving(), pool)[0].records.item())
    with suppress(psutil.NoSuchProcess):  # it may have ended already
        psutil.Process(pid).wait(_SAFETY_SECONDS)
    assert not psutil.pid_exists(pid)
    assert pool.processes() == ()


def test_an_abandoned_reading_releases_its_process(pool: ParserPool) -> None:
    reading = Misbehaving(then="spin").with_parsers(Parsers(pool)).read(io.BytesIO(b"x"), "a.odd")
    child = psutil.Process(int(next(reading).records.item()))
    reading.close()  # type: ignore[attr-defined]  # a generator
    assert not child.is_running()
    assert pool.processes() == ()


def test_several_threads_share_the_processes() -> None:
    pool = ParserPool(ParserLimits(processes=2))
    try:
        with ThreadPoolExecutor(6) as threads:
            readings = list(threads.map(lambda _: read(Excel(), pool, workbook(), "a.xlsx"), range(24)))
        assert {reading[0].records.item() for reading in readings} == {"A"}
        assert 1 <= len(pool.processes()) <= 2
    finally:
        pool.close()


@pytest.mark.parametrize("stopped", [False, True], ids=["spinning", "not running at all"])
def test_a_hanging_parser_ends_when_its_connector_is_interrupted(pool: ParserPool, stopped: bool) -> None:
    parsers = Parsers(pool)
    reading = Misbehaving(then="spin").with_parsers(parsers).read(io.BytesIO(b"x"), "a.odd")
    child = int(next(reading).records.item())
    if stopped:
        os.kill(child, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        rest = threads.submit(list, reading)
        parsers.interrupt()
        with pytest.raises(SourceUnavailable, match="stopped before the file's end"):
            rest.result(_SAFETY_SECONDS)
    assert len(read(Misbehaving(), pool)) == 1  # the process of the other connector continues


def test_a_reading_that_waits_for_a_process_is_interrupted() -> None:
    pool = ParserPool(ParserLimits(processes=1))
    busy = Misbehaving().with_parsers(Parsers(pool)).read(io.BytesIO(b"x"), "a.odd")
    next(busy)
    waiting = Parsers(pool)
    with ThreadPoolExecutor(1) as threads:
        blocked = threads.submit(lambda: list(Misbehaving().with_parsers(waiting).read(io.BytesIO(b"x"), "b.odd")))
        waiting.interrupt()
        with pytest.raises(SourceUnavailable):
            blocked.result(_SAFETY_SECONDS)
    busy.close()  # type: ignore[attr-defined]  # a generator


def test_a_parser_that_reports_nothing_is_killed() -> None:
    pool = ParserPool(ParserLimits(silent_seconds=0.5, cpu_seconds=3600))
    reading = Misbehaving(then="spin").with_parsers(Parsers(pool)).read(io.BytesIO(b"x"), "a.odd")
    with pytest.raises(SourceBroken, match=r"reported nothing for 0\.5 seconds and was stopped"):
        list(reading)
    assert pool.processes() == ()


def test_the_process_receives_no_secret(pool: ParserPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGESTD_API_KEY", "edw_secret")
    lines = [chunk.records.item() for chunk in read(Misbehaving(then="environment"), pool)]
    assert any(line.startswith("PATH=") for line in lines)
    assert not any("INGESTD" in line or "edw_" in line for line in lines)


_PARENT = """
import io, threading
from ingestd.sdk.formats.parser_process import Parsers
from tests.support.parser_formats import Misbehaving
from tests.support.workbook_bytes import xls
reading = Misbehaving(then="spin").with_parsers(Parsers()).read(io.BytesIO(b"x"), "a.odd")
def begin():
    print(next(reading).records.item(), flush=True)
thread = threading.Thread(target=begin)
thread.start()
thread.join()  # the thread that started the process ends, which must not end the process
print("going on", flush=True)
next(reading)
"""


def test_a_process_ends_with_its_parent_and_not_with_the_thread_that_started_it() -> None:
    root = str(Path(__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert parent.stdout.readline() == "going on\n"
        assert child.status() != psutil.STATUS_ZOMBIE
        parent.kill()
        child.wait(_SAFETY_SECONDS)


def test_a_compressed_workbook_is_parsed_in_the_process(pool: ParserPool) -> None:
    from connectors.formats import resolve_format

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.xlsx", workbook())
        archive.writestr("b.xlsx", workbook("XFD1048576"))
    reading = resolve_format("all.zip", None).with_parsers(Parsers(pool)).read(io.BytesIO(out.getvalue()), "all.zip")
    assert next(reading).records.item() == "A"
    with pytest.raises(SourceBroken, match=r"b\.xlsx can't be read: parsing it needs more than"):
        next(reading)


def test_concurrent_interrupts_are_harmless(pool: ParserPool) -> None:
    parsers = Parsers(pool)
    reading = Misbehaving(then="spin").with_parsers(parsers).read(io.BytesIO(b"x"), "a.odd")
    next(reading)
    threads = [threading.Thread(target=parsers.interrupt) for _ in range(8)]
    for thread in threads:
        thread.start()
    with pytest.raises(SourceUnavailable):
        next(reading)
    for thread in threads:
        thread.join()

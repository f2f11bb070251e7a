"""Workbooks and Parquet are parsed in a child process; if it dies, only one file is affected."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from connectors.formats import Format, RecordChunk, resolve_format
from connectors.formats.excel import Excel
from ingestd.sdk import SourceBroken, SourceUnavailable
from ingestd.sdk.formats.parser_process import ParserLimits, ParserPool, Parsers
from tests.support.convertible_files import zipped
from tests.support.parser_formats import Misbehaving
from tests.support.workbook_bytes import xls, xlsx

_SAFETY_SECONDS = 60


@pytest.fixture(scope="module")
def strict() -> Iterator[ParserPool]:
    """A pool that tests share, with little memory for a file."""
    pool = ParserPool(ParserLimits(memory_bytes=2**29))
    yield pool
    pool.close()


@pytest.fixture
def new_pool() -> Iterator[Callable[..., ParserPool]]:
    with ExitStack() as stack:

        def create(**limits: float) -> ParserPool:
            pool = ParserPool(ParserLimits(**limits))  # type: ignore[arg-type]
            stack.callback(pool.close)
            return pool

        yield create


def begun(file_format: Format, parsers: Parsers, data: bytes = b"x", name: str = "a.odd") -> Iterator[RecordChunk]:
    return file_format.with_parsers(parsers).read(io.BytesIO(data), name)


def read(file_format: Format, pool: ParserPool, data: bytes = b"x", name: str = "a.odd") -> list[RecordChunk]:
    return list(begun(file_format, Parsers(pool), data, name))


WORKBOOK = xlsx(["part"], ["A"])
LAST_CORNER = xlsx(["part"], change=lambda sheet: sheet.cell(1_048_576, 16_384, "A"))
HEADER_AND_ZEROS = xls([["part"]])[:512] + bytes(512)
ITS_CHAIN_OF_SECTORS_HAS_NO_END = HEADER_AND_ZEROS + xls([["part"]])[1024:]
NO_MEMORY = "can't be read: parsing it needs more than 512 MiB of memory"


@pytest.mark.parametrize(
    ("data", "words"),
    [(HEADER_AND_ZEROS, r"holds no workbook"), (ITS_CHAIN_OF_SECTORS_HAS_NO_END, NO_MEMORY), (LAST_CORNER, NO_MEMORY)],
    ids=["header and zeros", "endless chain", "last corner"],
)
def test_a_workbook_that_needs_too_much_is_reported_in_one_sentence(
    strict: ParserPool, data: bytes, words: str
) -> None:
    with pytest.raises(SourceBroken, match=rf"^a\.xls {words}.*save it again"):
        read(Excel(), strict, data, "a.xls")
    assert read(Excel(), strict, WORKBOOK, "b.xlsx")[0].records.rows() == [("A",)]


@pytest.mark.parametrize(
    ("then", "words"),
    [
        ("allocate", "parsing it needs more than 512 MiB of memory"),
        ("spin", "takes more than 0 seconds of processor time"),
        ("abort", "its parser failed, it ended with signal SIGABRT"),
        ("raise", "its parser failed, LookupError: no such sheet"),
    ],
)
def test_the_death_of_the_parser_rejects_the_file_and_the_next_one_is_read(
    strict: ParserPool, new_pool: Callable[..., ParserPool], then: str, words: str
) -> None:
    pool = new_pool(cpu_seconds=0) if then == "spin" else strict
    with pytest.raises(SourceBroken, match=rf"a\.odd can't be read: .*{words}.*save it again"):
        read(Misbehaving(then=then), pool)
    assert len(read(Misbehaving(), pool)) == 1


def test_a_process_is_started_on_demand_and_parses_many_files(new_pool: Callable[..., ParserPool]) -> None:
    pool = new_pool()
    assert pool.processes() == ()
    first = read(Misbehaving(), pool)[0].records.item()
    with pytest.raises(SourceBroken, match="has no sheet"):
        read(Excel(sheet="Masses"), pool, WORKBOOK, "a.xlsx")
    assert read(Misbehaving(), pool)[0].records.item() == first
    assert pool.processes() == (int(first),)


def test_an_idle_process_ends_after_some_time(new_pool: Callable[..., ParserPool]) -> None:
    pool = new_pool(idle_seconds=0)
    pid = int(read(Misbehaving(), pool)[0].records.item())
    with suppress(psutil.NoSuchProcess):  # it may have ended already
        psutil.Process(pid).wait(_SAFETY_SECONDS)
    assert not psutil.pid_exists(pid)
    assert pool.processes() == ()


def test_an_abandoned_reading_releases_its_process(new_pool: Callable[..., ParserPool]) -> None:
    pool = new_pool()
    reading = begun(Misbehaving(then="spin"), Parsers(pool))
    child = psutil.Process(int(next(reading).records.item()))
    reading.close()  # type: ignore[attr-defined]  # a generator
    assert not child.is_running()
    assert pool.processes() == ()


def test_several_threads_share_the_processes(new_pool: Callable[..., ParserPool]) -> None:
    pool = new_pool(processes=2)
    with ThreadPoolExecutor(6) as threads:
        readings = list(threads.map(lambda _: read(Excel(), pool, WORKBOOK, "a.xlsx"), range(24)))
    assert {reading[0].records.item() for reading in readings} == {"A"}
    assert 1 <= len(pool.processes()) <= 2


def test_a_parser_that_does_not_run_at_all_ends_when_its_connector_is_interrupted(
    new_pool: Callable[..., ParserPool],
) -> None:
    pool = new_pool()
    parsers = Parsers(pool)
    reading = begun(Misbehaving(then="spin"), parsers)
    os.kill(int(next(reading).records.item()), signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        rest = threads.submit(list, reading)
        parsers.interrupt()
        with pytest.raises(SourceUnavailable, match="stopped before the file's end"):
            rest.result(_SAFETY_SECONDS)
    assert len(read(Misbehaving(), pool)) == 1  # the access of another connector continues


def test_a_reading_that_waits_for_a_process_is_interrupted(new_pool: Callable[..., ParserPool]) -> None:
    pool = new_pool(processes=1)
    busy = begun(Misbehaving(), Parsers(pool))
    next(busy)
    waiting = Parsers(pool)
    with ThreadPoolExecutor(1) as threads:
        blocked = threads.submit(lambda: list(begun(Misbehaving(), waiting)))
        waiting.interrupt()
        with pytest.raises(SourceUnavailable):
            blocked.result(_SAFETY_SECONDS)
    busy.close()  # type: ignore[attr-defined]  # a generator


def test_a_parser_that_reports_nothing_is_killed(new_pool: Callable[..., ParserPool]) -> None:
    pool = new_pool(silent_seconds=0.5, cpu_seconds=3600)
    with pytest.raises(SourceBroken, match=r"reported nothing for 0\.5 seconds and was stopped"):
        read(Misbehaving(then="spin"), pool)
    assert pool.processes() == ()


def test_the_process_receives_no_secret(new_pool: Callable[..., ParserPool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGESTD_API_KEY", "edw_secret")
    lines = [chunk.records.item() for chunk in read(Misbehaving(then="environment"), new_pool())]
    assert any(line.startswith("PATH=") for line in lines)
    assert not any("INGESTD" in line or "edw_" in line for line in lines)


_PARENT = """
import io, threading
from ingestd.sdk.formats.parser_process import Parsers
from tests.support.parser_formats import Misbehaving
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


def test_a_compressed_workbook_is_parsed_in_the_process(strict: ParserPool) -> None:
    data = zipped({"a.xlsx": WORKBOOK, "b.xlsx": LAST_CORNER})
    reading = begun(resolve_format("all.zip", None), Parsers(strict), data, "all.zip")
    assert next(reading).records.item() == "A"
    with pytest.raises(SourceBroken, match=rf"b\.xlsx {NO_MEMORY}"):
        next(reading)


def test_concurrent_interrupts_are_harmless(new_pool: Callable[..., ParserPool]) -> None:
    parsers = Parsers(new_pool())
    reading = begun(Misbehaving(then="spin"), parsers)
    next(reading)
    threads = [threading.Thread(target=parsers.interrupt) for _ in range(8)]
    for thread in threads:
        thread.start()
    with pytest.raises(SourceUnavailable):
        next(reading)
    for thread in threads:
        thread.join()

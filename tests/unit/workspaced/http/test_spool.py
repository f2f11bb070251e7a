"""A long response is read from the database without delay, and is stored in files for a slow client."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path

import pytest

from workspaced.core.problems import TooManyRequests, UnavailableProblem
from workspaced.http import long_responses, spool
from workspaced.http.long_responses import LongResponses
from workspaced.http.spool import SpoolRoom, spooled

PART = 300_000
MANY = 100  # 30 MB, in more than one file


class Source:
    """Parts of a known content; signals when the last was read and when it was closed."""

    def __init__(self, parts: int = MANY) -> None:
        self._parts = parts
        self.read = asyncio.Event()
        self.closed = asyncio.Event()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(self._parts):
                yield bytes([number]) * PART
            self.read.set()
        finally:
            self.closed.set()

    @property
    def content(self) -> bytes:
        return b"".join(bytes([number]) * PART for number in range(self._parts))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CLIENT_WAIT_SECONDS", 0.0)


def room(folder: Path, most: int = 1 << 30) -> SpoolRoom:
    return SpoolRoom(folder, most=most)


def never() -> bool:
    return False


async def test_all_is_read_while_the_client_has_received_only_the_first_part(tmp_path: Path) -> None:
    source, space = Source(), room(tmp_path)
    async with asyncio.timeout(30), aclosing(spooled(source.parts(), space, "a", is_contended=never)) as parts:
        first = await anext(parts)
        await source.closed.wait()
        assert source.read.is_set()
        assert space.used > MANY * PART - spool.MEMORY_BYTES - 2 * PART
        assert first + b"".join([part async for part in parts]) == source.content
    assert space.used == 0


async def test_a_fast_client_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CLIENT_WAIT_SECONDS", 30.0)
    source, space = Source(), room(tmp_path / "missing")
    assert b"".join([part async for part in spooled(source.parts(), space, "a", is_contended=never)]) == source.content


async def test_a_client_that_disconnects_releases_all_files(tmp_path: Path) -> None:
    source, space = Source(), room(tmp_path)
    async with asyncio.timeout(30), aclosing(spooled(source.parts(), space, "a", is_contended=never)) as parts:
        await anext(parts)
    assert source.closed.is_set()
    assert space.used == 0


async def test_a_caller_has_a_quarter_of_the_space_and_gets_all_it_reads(tmp_path: Path) -> None:
    source, space = Source(), room(tmp_path, most=40 * PART)
    most = 0
    received = bytearray()
    async with asyncio.timeout(30), aclosing(spooled(source.parts(), space, "a", is_contended=never)) as parts:
        async for part in parts:
            received += part
            most = max(most, space.used)
    assert received == source.content
    assert 0 < most <= 10 * PART


async def test_a_client_without_space_is_disconnected_while_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract G34
    monkeypatch.setattr(spool, "_ROOM_SECONDS", 0.01)
    source, space = Source(), room(tmp_path, most=40 * PART)
    async with asyncio.timeout(30), aclosing(spooled(source.parts(), space, "a", is_contended=lambda: True)) as parts:
        await anext(parts)
        await source.closed.wait()
        with pytest.raises(UnavailableProblem):
            async for _ in parts:
                pass


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Limit the size of files, which has the effect of a full disk."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)


async def test_without_disk_space_reading_waits_for_the_client(tmp_path: Path) -> None:
    source, space = Source(), room(tmp_path)
    with largest_file(4 * PART + 17):
        received = [part async for part in spooled(source.parts(), space, "a", is_contended=never)]
    assert b"".join(received) == source.content
    assert space.used == 0


async def test_without_a_folder_reading_waits_for_the_client(tmp_path: Path) -> None:
    source, space = Source(), room(tmp_path / "missing")
    received = [part async for part in spooled(source.parts(), space, "a", is_contended=never)]
    assert b"".join(received) == source.content
    assert space.used == 0


async def test_a_caller_waits_only_for_its_own_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # contract G34
    responses = LongResponses(room(tmp_path), per_caller=2)
    held = [(await responses.begin("a", Source(3).parts()))[1] for _ in range(2)]
    monkeypatch.setattr(long_responses, "_WAIT_SECONDS", 0.01)
    with pytest.raises(TooManyRequests) as refused:
        await responses.begin("a", Source(3).parts())
    assert refused.value.code == "too_many_long_responses"
    monkeypatch.setattr(long_responses, "_WAIT_SECONDS", 30.0)
    first, other = await responses.begin("b", Source(3).parts())
    assert first + b"".join([part async for part in other]) == Source(3).content
    waiting = asyncio.create_task(responses.begin("a", Source(3).parts()))
    await held[0].aclose()  # no part of it was requested
    async with asyncio.timeout(30):
        _, parts = await waiting
    for one in (parts, held[1], other):
        await one.aclose()


async def test_a_database_read_that_uses_the_whole_share_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_responses, "_WAIT_SECONDS", 0.01)
    responses = LongResponses(room(tmp_path), per_caller=1)

    async def stuck() -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""

    for _ in range(2):  # the share is released
        with pytest.raises(UnavailableProblem) as refused:
            await responses.begin("a", stuck())
        assert refused.value.code == "streams_busy"

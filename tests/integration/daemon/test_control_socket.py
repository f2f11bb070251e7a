"""The socket beside the state file: who may use it, what is answered, and what is left behind."""

from __future__ import annotations

import asyncio
import getpass
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ingestd.core.errors import MirrorFull
from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import DropRejected, Request, Response, RetryRejected
from ingestd.daemon.control.server import ControlServer
from ingestd.mirror.rejections import Retried, Selection
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import ControlUnavailable

DROP = DropRejected(selection=Selection(ids=(1, 2), file="m.csv"))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "ingestd.db"


@asynccontextmanager
async def listening(
    state: Path, perform: Callable[[Request, str], Awaitable[Response]], events: list[Event] | None = None
) -> AsyncIterator[None]:
    """A server that answers, until the block ends."""
    server = ControlServer(state, perform=perform, emit=(events if events is not None else []).append)
    running = asyncio.create_task(server.run())
    await asyncio.sleep(0)  # it listens, or has said that it can't, before it waits for the first time
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})


async def seven(request: Request, by: str) -> Response:
    return 7


async def line(state: Path, content: bytes) -> bytes:
    with short_address(socket_file(state)) as address:
        reader, writer = await asyncio.open_unix_connection(address)
    writer.write(content)
    response = await reader.readline()
    writer.close()
    return response


async def test_a_request_arrives_as_it_was_asked_with_the_account_that_asked(state: Path) -> None:
    heard: list[tuple[Request, str]] = []

    async def perform(request: Request, by: str) -> Response:
        heard.append((request, by))
        return Retried(records=1, entries=2, pipelines=("p",))

    request = RetryRejected(selection=Selection(pipeline="p", reason="é", key="a*"))
    async with listening(state, perform):
        assert await call(state, request) == Retried(records=1, entries=2, pipelines=("p",))
    assert heard == [(request, getpass.getuser())]


async def test_several_may_ask_at_once_and_one_that_takes_long_holds_up_nobody(state: Path) -> None:
    free = asyncio.Event()

    async def perform(request: Request, by: str) -> Response:
        if isinstance(request, RetryRejected):
            await free.wait()
            return Retried()
        return 1

    async with listening(state, perform):
        slow = asyncio.create_task(call(state, RetryRejected(selection=Selection())))
        assert await call(state, DROP) == 1
        assert not slow.done()
        free.set()
        assert await slow == Retried()


async def test_a_state_file_may_lie_deeper_than_a_socket_s_address_is_long(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 40)
    folder.mkdir()
    async with listening(folder / "ingestd.db", seven):
        assert await call(folder / "ingestd.db", DROP) == 7


async def test_the_socket_is_for_its_owner_alone_and_gone_afterwards(state: Path) -> None:
    async with listening(state, seven):
        assert stat.S_IMODE(socket_file(state).stat().st_mode) == 0o600
    assert not socket_file(state).exists()
    with pytest.raises(NoDaemon):
        await call(state, DROP)


async def test_what_a_killed_daemon_left_is_nobody_and_is_replaced(state: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    with short_address(socket_file(state)) as address:
        left.bind(address)
    left.close()
    with pytest.raises(NoDaemon):
        await call(state, DROP)
    async with listening(state, seven):
        assert await call(state, DROP) == 7


@pytest.mark.parametrize(
    "content", [b'{"version":99,"request":{"type":"drop_rejected"}}\n', b"what?\n", b'{"version":1,"request":{}}\n']
)
async def test_another_version_s_request_is_refused_with_what_to_do(state: Path, content: bytes) -> None:
    async with listening(state, seven):
        assert b"another version than this command. Restart the daemon." in await line(state, content)
        assert await call(state, DROP) == 7


async def test_what_the_daemon_can_t_do_is_told_to_who_asked(state: Path) -> None:
    async def perform(request: Request, by: str) -> Response:
        raise MirrorFull("The disk is full.")

    async with listening(state, perform):
        with pytest.raises(RequestRefused, match=r"The disk is full\."):
            await call(state, DROP)


async def test_who_asks_a_daemon_that_stops_is_told_so(state: Path) -> None:
    begun = asyncio.Event()

    async def perform(request: Request, by: str) -> Response:
        begun.set()
        await asyncio.Event().wait()
        return 0

    async with listening(state, perform):
        asking = asyncio.create_task(call(state, DROP))
        await begun.wait()
    with pytest.raises(RequestRefused, match="The daemon is stopping"):
        await asking


async def test_a_daemon_that_can_make_no_socket_says_so_and_goes_on(tmp_path: Path) -> None:
    events: list[Event] = []
    async with listening(tmp_path / "nowhere" / "ingestd.db", seven, events):
        pass
    (told,) = events
    assert isinstance(told, ControlUnavailable)
    assert "No such file" in told.reason

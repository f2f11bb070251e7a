"""The socket beside the state file: who may use it, its responses, and its removal."""

from __future__ import annotations

import asyncio
import getpass
import pwd
import socket
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.commands import control_client
from ingestd.core.errors import MirrorFull
from ingestd.daemon.control import caller, server
from ingestd.daemon.control.address import short_address, socket_file
from ingestd.daemon.control.caller import NoDaemon, call
from ingestd.daemon.control.refusal import DaemonSilent, RequestRefused
from ingestd.daemon.control.requests import (
    DropRejected,
    Explain,
    Explained,
    Request,
    Response,
    RetryRejected,
    decode_response,
    encode_request,
)
from ingestd.daemon.control.server import ControlServer, account
from ingestd.daemon.explanation import explain
from ingestd.mirror.rejections import Retried, Selection
from ingestd.sdk import Cursor, SourceContext
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
    """Run a server until the block ends."""
    server = ControlServer(state, perform=perform, emit=(events if events is not None else []).append)
    running = asyncio.create_task(server.run())
    await asyncio.sleep(0)  # It listens, or has reported a failure, before its first wait.
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})


async def seven(request: Request, by: str) -> Response:
    return 7


def explaining(kind: type[DirectoryConnector], folder: Path) -> Callable[[Request, str], Awaitable[Response]]:
    """Return what performs requests for explanations by a connector of the folder."""
    connector = kind(DirectoryOptions(path=str(folder)), SourceContext(pipeline="p", base=folder, now=lambda: 4e9))

    async def perform(request: Request, by: str) -> Response:
        assert isinstance(request, Explain)
        return explain({"p": connector}, request)

    return perform


async def line(state: Path, content: bytes) -> bytes:
    with short_address(socket_file(state)) as address:
        reader, writer = await asyncio.open_unix_connection(address)
    writer.write(content)
    response = await reader.readline()
    writer.close()
    return response


async def test_a_request_arrives_unchanged_with_the_account_of_the_client(state: Path) -> None:
    requests: list[tuple[Request, str]] = []

    async def perform(request: Request, by: str) -> Response:
        requests.append((request, by))
        return Retried(records=1, entries=2, pipelines=("p",))

    request = RetryRejected(selection=Selection(pipeline="p", reason="é", key="a*"))
    async with listening(state, perform):
        assert await call(state, request) == Retried(records=1, entries=2, pipelines=("p",))
    assert requests == [(request, getpass.getuser())]


async def test_requests_are_concurrent_and_a_slow_one_delays_no_other(state: Path) -> None:
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


@pytest.mark.parametrize("others", [0, 1], ids=["accepted by the kernel", "full queue"])
async def test_the_wait_for_a_daemon_that_is_stopped_ends_with_a_sentence(
    state: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    monkeypatch.setattr(caller, "SILENT_SECONDS", 0.05)
    with ExitStack() as sockets, short_address(socket_file(state)) as address:
        stopped = sockets.enter_context(socket.socket(socket.AF_UNIX))
        stopped.bind(address)
        stopped.listen(0)
        for _ in range(others):
            sockets.enter_context(socket.socket(socket.AF_UNIX)).connect(address)
        with pytest.raises(DaemonSilent, match="stopped or hangs"):
            await call(state, DROP)


async def test_a_daemon_shows_that_it_runs_while_it_executes_a_request(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ALIVE_SECONDS", 0.01)
    free = asyncio.Event()

    async def perform(request: Request, by: str) -> Response:
        await free.wait()
        return 7

    async with listening(state, perform):
        with short_address(socket_file(state)) as address:
            reader, writer = await asyncio.open_unix_connection(address)
        writer.write(encode_request(DROP))
        assert await reader.readexactly(2) == b"  "
        free.set()
        assert decode_response(DROP, await reader.readline()) == 7
        writer.close()


async def test_a_long_wait_for_the_daemon_is_explained_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = asyncio.Event()
    shown: list[str] = []

    def show(sentence: str, *, err: bool) -> None:
        shown.append(sentence)
        assert err
        free.set()

    async def perform(request: Request, by: str) -> Response:
        await free.wait()
        return 7

    monkeypatch.setattr(control_client, "_EXPLAINED_SECONDS", 0.01)
    monkeypatch.setattr(control_client, "echo", show)
    async with listening(state, perform):
        assert await control_client.call_daemon(state, DROP) == 7
    (sentence,) = shown
    assert "has not responded" in sentence
    assert sentence.endswith("Ctrl-C ends this command, not the request.")


async def test_a_directory_service_that_does_not_respond_delays_only_the_command(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, responds = threading.Event(), threading.Event()
    responded: list[bool] = []

    def look_up(uid: int) -> None:
        begun.set()
        responded.append(responds.wait(5))
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", look_up)
    account.cache_clear()
    try:
        async with listening(state, seven):
            waiting = asyncio.create_task(call(state, DROP))
            await asyncio.to_thread(begun.wait)
            responds.set()
            assert await waiting == 7
    finally:
        account.cache_clear()
    assert responded == [True]


async def test_the_path_of_a_state_file_can_exceed_the_length_of_a_socket_address(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 40)
    folder.mkdir()
    async with listening(folder / "ingestd.db", seven):
        assert await call(folder / "ingestd.db", DROP) == 7


async def test_the_socket_is_accessible_to_its_owner_only_and_removed_at_the_end(state: Path) -> None:
    async with listening(state, seven):
        assert stat.S_IMODE(socket_file(state).stat().st_mode) == 0o600
    assert not socket_file(state).exists()
    with pytest.raises(NoDaemon):
        await call(state, DROP)


async def test_a_socket_of_a_killed_daemon_is_recognised_and_replaced(state: Path) -> None:
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
async def test_a_request_of_another_version_is_rejected_with_the_next_step(state: Path, content: bytes) -> None:
    async with listening(state, seven):
        assert b"another version than this command. Restart the daemon." in await line(state, content)
        assert await call(state, DROP) == 7


async def test_a_failed_command_is_reported_to_the_client(state: Path) -> None:
    async def perform(request: Request, by: str) -> Response:
        raise MirrorFull("The disk is full.")

    async with listening(state, perform):
        with pytest.raises(RequestRefused, match=r"The disk is full\."):
            await call(state, DROP)


async def test_a_name_with_a_nul_character_is_refused_with_a_sentence(state: Path, tmp_path: Path) -> None:
    async with listening(state, explaining(DirectoryConnector, tmp_path)):
        with pytest.raises(RequestRefused, match="has a NUL character"):
            await call(state, Explain(pipeline="p", partition="a\0b.csv", cursor=None))


async def test_the_failure_of_a_connector_that_explains_a_file_is_the_explanation(state: Path, tmp_path: Path) -> None:
    class Failing(DirectoryConnector):
        def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
            raise LookupError(f"no row of {name} at {cursor}")

    async with listening(state, explaining(Failing, tmp_path)):
        explained = await call(state, Explain(pipeline="p", partition="a.csv", cursor=None))
    assert isinstance(explained, Explained)
    assert (
        explained.waiting
        == "The connector failed to explain it: LookupError: no row of a.csv at None. Please report it."
    )


async def test_a_client_of_a_stopping_daemon_is_informed(state: Path) -> None:
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


async def test_a_daemon_that_cannot_create_its_socket_reports_it_and_continues(tmp_path: Path) -> None:
    events: list[Event] = []
    async with listening(tmp_path / "nowhere" / "ingestd.db", seven, events):
        pass
    (event,) = events
    assert isinstance(event, ControlUnavailable)
    assert "No such file" in event.reason

"""Delivery from the real state file, through crashes on both sides, to the exact end state."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.client.transport import Timeouts
from ingestd.core.address import SinkAddress
from ingestd.delivery.delivery_limits import DeliveryLimits
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.bulk_service import BulkService
from tests.support.chaos_transport import ChaosTransport
from tests.support.delivery_rig import FAST_LIMITS, rig
from tests.support.desired_entries import desire_all
from tests.support.document_server import DocumentServer, Store
from tests.support.memory_mirror import Desired

WORKSPACE = "0b6c5c4e-55a4-4c0e-9d5e-3f4f0a6a7b10"
TO = SinkAddress(workspace=WORKSPACE, by="label", name="Mass budget")
ABRUPT = DeliveryLimits(retry=FAST_LIMITS.retry, pause=FAST_LIMITS.pause, grace_seconds=0)


def state(turn: int, count: int = 300) -> dict[str, Desired]:
    """Return other entries in each turn: some stay, some change, some are added and removed."""
    return {
        f"K-{n:03}": (f"{turn if n % 3 == turn % 3 else 0}.{n}0", "text" if n % 50 == turn else "scalar")
        for n in range(count)
        if n % 11 != turn
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bulk", [True, False], ids=["bulk", "single form"])
async def test_random_faults_and_crashes_of_the_daemon_end_in_the_exact_state(
    tmp_path: Path, seed: int, bulk: bool
) -> None:
    service = BulkService(announce=bulk, max_items=70, partial=bool(seed % 2))
    service.store.create_workspace({"id": WORKSPACE, "label": "Bench"})
    chaos = ChaosTransport(inner=service, seed=seed, most=150)
    file = tmp_path / "ingestd.db"
    for turn in range(5):
        mirror = SqliteMirror.open(file)
        try:
            async with rig(transport=chaos, deliverable=mirror.delivery, limits=ABRUPT, seed=seed) as running:
                mirror.on_pending = running.dispatcher.wake
                desire_all(mirror, TO, state(turn))
                # The block ends here: requests in flight are abandoned, claims are lost with the process.
                await running.acknowledged_more(1 + seed)
        finally:
            mirror.close()
    mirror = SqliteMirror.open(file)
    try:
        async with rig(transport=chaos, deliverable=mirror.delivery) as running:
            desire_all(mirror, TO, state(9))
            assert await running.drained() == []
        assert (mirror.status.pending(), mirror.status.rejected()) == (0, 0)
        service.requests.clear()
        async with rig(transport=service, deliverable=mirror.delivery) as running:
            desire_all(mirror, TO, state(9))
            assert await running.drained() == []
        assert service.requests == []
    finally:
        mirror.close()
    (sink,) = service.store.by_label("Mass budget")
    assert service.store.values(sink) == state(9)


async def test_entries_that_the_service_rejects_are_stored_in_the_state_file(tmp_path: Path) -> None:
    service = BulkService(bad=lambda key: key == "K-007")
    service.store.create_workspace({"id": WORKSPACE, "label": "Bench"})
    mirror = SqliteMirror.open(tmp_path / "ingestd.db")
    try:
        async with rig(transport=service, deliverable=mirror.delivery) as running:
            desire_all(mirror, TO, state(0))
            assert await running.drained() == []
        assert (mirror.status.pending(), mirror.status.rejected()) == (0, 1)
    finally:
        mirror.close()
    (sink,) = service.store.by_label("Mass budget")
    assert service.store.values(sink) == {key: value for key, value in state(0).items() if key != "K-007"}


class ServerProcess:
    """The document server in a process that can be killed, always with the same port and file."""

    def __init__(self, file: Path, port: int) -> None:
        self.file = file
        self.port = port
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        arguments = ["--port", str(self.port), "--data", str(self.file), "--workspace", WORKSPACE]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.document_server", *arguments], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("listening on ")

    def kill(self) -> None:
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


@pytest.fixture
def server_process(tmp_path: Path) -> Iterator[ServerProcess]:
    with DocumentServer() as free:
        port = free.port
    server = ServerProcess(tmp_path / "service.ndjson", port)
    server.start()
    yield server
    server.kill()


async def test_repeated_kills_of_the_service_end_in_the_exact_state(
    tmp_path: Path, server_process: ServerProcess
) -> None:
    mirror = SqliteMirror.open(tmp_path / "ingestd.db")
    try:
        async with rig(
            url=f"http://127.0.0.1:{server_process.port}",
            deliverable=mirror.delivery,
            timeouts=Timeouts(connect_seconds=5, read_seconds=10),
        ) as running:
            loop = asyncio.get_running_loop()

            def on_pending(sink: int) -> None:
                loop.call_soon_threadsafe(running.dispatcher.wake, sink)

            mirror.on_pending = on_pending
            for turn in range(6):
                await asyncio.to_thread(desire_all, mirror, TO, state(turn))
                await running.acknowledged_more(1 + turn % 2)
                await asyncio.to_thread(server_process.kill)
                await asyncio.to_thread(server_process.start)
            assert await running.drained() == []
        assert (mirror.status.pending(), mirror.status.rejected()) == (0, 0)
    finally:
        mirror.close()
    server_process.kill()
    store = Store(file=server_process.file)
    (sink,) = store.by_label("Mass budget")
    assert store.values(sink) == state(5)
    store.close()


async def test_a_sink_of_many_entries_is_adopted_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestd.mirror.sqlite.entries.adoption._PAGE", 5_000)
    with DocumentServer() as server:
        server.store.create_workspace({"id": WORKSPACE, "label": "Bench"})
        held = [{"key": f"K-{n}", "value": str(n), "dataType": "scalar"} for n in range(12_000)]
        server.store.create_sink(WORKSPACE, {"label": "Mass budget", "entries": held})
        mirror = SqliteMirror.open(tmp_path / "ingestd.db")
        try:
            async with rig(url=server.url, deliverable=mirror.delivery) as running:
                wanted: dict[str, Desired] = {f"K-{n}": (str(n), "scalar") for n in range(12_000)}
                desire_all(mirror, TO, wanted | {"K-5": ("five", "text")})
                assert await running.drained() == []
            assert mirror.status.pending() == 0
        finally:
            mirror.close()
        assert server.values("Mass budget") == wanted | {"K-5": ("five", "text")}
        assert {request.method for request in server.writes()} == {"POST", "PATCH"}
        assert len(server.writes()) == 2


async def test_the_response_to_a_request_in_flight_is_read_completely_by_the_real_transport(tmp_path: Path) -> None:
    """httpx and the server agree about keep-alive: a thousand requests have no fault."""
    with DocumentServer() as server:
        server.store.create_workspace({"id": WORKSPACE, "label": "Bench"})
        async with rig(url=server.url) as running:
            running.desire(TO, {"start": ("1", "scalar")})
            await running.drained()
            running.desire(TO, {f"K-{n}": ("1", "scalar") for n in range(1000)})
            assert await running.drained(60) == []
            assert {attempt.outcome for _, attempt in running.mirror.attempts} == {"accepted"}
        assert server.errors == 0

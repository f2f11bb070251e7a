"""Daemons with `--standby` in this process. Each has its own state file, control socket and listener."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx
import pytest

from ingestd.daemon import lifecycle
from ingestd.daemon.configuration import read_configuration
from ingestd.daemon.control.caller import call
from ingestd.daemon.control.message import ReadStatus, StatusText
from ingestd.daemon.control.requests import ControlStandby, StandbyControlled
from ingestd.daemon.standby_phase import StandbyPhase
from ingestd.process.change_signal import ChangeSignal
from ingestd.process.notify import Notifier
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.daemon import ListenerOpened
from ingestd.telemetry.catalogue.standby import LeaseTaken
from ingestd.web.application import serve
from ingestd.web.event_counts import EventCounts
from ingestd.web.standby_application import serve_standby

E = TypeVar("E", bound=Event)
T = TypeVar("T")

DEADLINE_SECONDS = 90.0


class StandbyDaemon:
    """A daemon. `running` starts it."""

    def __init__(
        self, folder: Path, *, service_url: str, place: str, pipelines: list[dict[str, Any]], lease_seconds: int = 20
    ) -> None:
        folder.mkdir(exist_ok=True)
        settings = {
            "service": {"url": service_url, "api_key": "test-key"},
            "state": "ingestd.db",
            "listen": {"address": "127.0.0.1:0"},
            "standby": {"lease_seconds": lease_seconds, "ship_seconds": 1},
            "pipelines": pipelines,
        }
        path = folder / "ingestd.yaml"
        path.write_text(json.dumps(settings))  # JSON is valid YAML.
        self.configuration = read_configuration(path, environment={}, cwd=folder)
        self.place = place
        self.events: list[Event] = []
        self._changes = ChangeSignal()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run the daemon as a task, and cancel it at the end."""
        self._phase = phase = StandbyPhase(
            self.configuration, self.place, emit=self._emit, serve=partial(serve_standby, emit=self._emit)
        )
        task = asyncio.create_task(
            lifecycle.run(
                self.configuration,
                emit=self._emit,
                notifier=Notifier(),
                serve=partial(serve, counts=EventCounts(), emit=self._emit),
                standby=phase,
            )
        )
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def forget_to_leave(self) -> None:
        """Prevent the last shipment and the release of the lease at the end of the daemon, as in a crash."""

        async def leave() -> None:
            if (keeping := self._phase.standby._keeping) is not None:
                keeping.cancel()

        self._phase.standby.leave = leave  # type: ignore[method-assign]

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        self._changes.notify()

    async def wait_for(self, kind: type[E]) -> E:
        """Wait until an event of a kind has been emitted; return the first such event."""
        return await self.wait_until(lambda: next((event for event in self.events if isinstance(event, kind)), None))

    async def wait_until(self, found: Callable[[], T | None]) -> T:
        """Wait until ``found`` returns a value that is not None; return it. ``found`` is called again after each event."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self._changes.wait_until(found)

    async def status(self) -> dict[str, Any]:
        """Return the member ``standby`` of `ingestd status --json`."""
        response = await call(self.configuration.settings.state, ReadStatus(as_json=True))
        assert isinstance(response, StatusText)
        return dict(json.loads(response.text)["standby"])

    async def lines(self) -> str:
        """Return the output of `ingestd status`."""
        response = await call(self.configuration.settings.state, ReadStatus(as_json=False))
        assert isinstance(response, StatusText)
        return response.text

    async def control(self, action: Literal["status", "promote", "step_down"]) -> StandbyControlled:
        response = await call(self.configuration.settings.state, ControlStandby(action=action))
        assert isinstance(response, StandbyControlled)
        return response

    async def get(self, path: str) -> httpx.Response:
        """Request a path of the listener. A daemon that becomes active opens a new listener."""
        address = await self.wait_until(self._address)
        async with httpx.AsyncClient(base_url=address, timeout=DEADLINE_SECONDS) as client:
            return await client.get(path)

    def _address(self) -> str:
        address = ""
        for event in self.events:
            if isinstance(event, LeaseTaken):
                address = ""
            elif isinstance(event, ListenerOpened):
                address = event.address
        return address


@contextmanager
def several_daemons_in_one_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the signal handlers after the block, and extend the drain time, so that a slow drain does not end the process."""
    monkeypatch.setattr(lifecycle, "DRAIN_SECONDS", 600.0)
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.support.api_client import api_client
from tests.support.webhook_receiver import DEADLINE_SECONDS, Received, WebhookReceiver
from workspaced.app import running
from workspaced.core.clock import Clock
from workspaced.security.egress.rules import EgressRules
from workspaced.settings.model import WorkspacedSettings


class ManualClock(Clock):
    """A clock that a test advances, or sets."""

    def __init__(self) -> None:
        self._now = time.time_ns() // 1_000_000
        self._set_by = 0
        self._alarms: list[tuple[int, asyncio.Event]] = []

    def now(self) -> int:
        return self._now

    def steady(self) -> int:
        return self._now - self._set_by

    def set_back(self, seconds: float) -> None:
        """Put the clock back as a correction of the time does: no waiting ends."""
        milliseconds = round(seconds * 1_000)
        self._now -= milliseconds
        self._set_by -= milliseconds

    async def wait(self, event: asyncio.Event, until: int) -> None:
        if until <= self._now:
            return
        alarm = asyncio.Event()
        entry = (until - self._set_by, alarm)
        self._alarms.append(entry)
        waiting = [asyncio.create_task(event.wait()), asyncio.create_task(alarm.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._alarms.remove(entry)
            for task in waiting:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1_000)
        for until, alarm in list(self._alarms):
            if until <= self.steady():
                alarm.set()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A running service, its clock, and a client with all permissions."""

    http: httpx.AsyncClient
    clock: ManualClock
    settings: WorkspacedSettings
    workspace: str

    @property
    def sinks(self) -> str:
        return f"/v1/workspace/{self.workspace}/data-sink"

    async def webhook(self, url: str, **members: Any) -> str:
        response = await self.http.post("/v1/webhooks", json={"url": url, **members})
        assert response.status_code == 201, response.text
        return str(response.headers["Location"])

    async def sink(self, label: str = "s") -> str:
        response = await self.http.post(self.sinks, json={"label": label})
        assert response.status_code == 201, response.text
        return str(response.headers["Location"])

    async def push(self, sink: str, key: str, value: str) -> None:
        response = await self.http.post(f"{sink}/mass", json={"key": key, "value": value})
        assert response.status_code == 200, response.text

    async def deliveries(self, webhook: str, query: str = "") -> list[dict[str, Any]]:
        response = await self.http.get(f"{webhook}/deliveries{query}")
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()
        return found

    async def until(self, webhook: str, good: Callable[[Sequence[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Return the log when it is as expected. Each attempt is logged only after its response."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not good(found := await self.deliveries(webhook)):  # noqa: ASYNC110  a caller has nothing to be woken by
                await asyncio.sleep(0.005)
        return found

    async def attempted(self, webhook: str, count: int) -> dict[str, Any]:
        """Return the newest delivery after this number of recorded attempts."""
        found = await self.until(webhook, lambda log: bool(log) and log[0]["attemptCount"] >= count)
        return found[0]

    async def detail(self, webhook: str, delivery: dict[str, Any]) -> dict[str, Any]:
        response = await self.http.get(f"{webhook}/deliveries/{delivery['id']}")
        assert response.status_code == 200, response.text
        record: dict[str, Any] = response.json()
        return record


async def arrival(receiver: WebhookReceiver) -> Received:
    return await asyncio.to_thread(receiver.next)


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(settings: WorkspacedSettings) -> WorkspacedSettings:
    """Deliver to this machine, too."""
    return dataclasses.replace(settings, egress=EgressRules.from_environment({}, dev=True))


@pytest.fixture
async def rig(settings: WorkspacedSettings, make_key: Callable[..., str]) -> AsyncIterator[Rig]:
    clock = ManualClock()
    async with running(settings, clock=clock, jitter=lambda: 0.5) as app, api_client(app, make_key()) as http:
        workspace = (await http.post("/v1/workspace", json={"label": "w"})).json()["id"]
        yield Rig(http=http, clock=clock, settings=settings, workspace=workspace)

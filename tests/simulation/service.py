"""The simulated service: the rules of a real one in memory, and every fault that a network and its proxies add to them."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import httpx

from tests.simulation.loop import run_inline
from tests.support.bulk_service import BulkService
from tests.support.document_server.store import Store

Fault: TypeAlias = Literal[
    "refused", "dropped before", "dropped after", "timeout before", "timeout after", "429", "429 wait", "503", "503 wait",
    "500", "502", "408", "401", "403", "html 200", "truncated", "slow",
    "proxy 400", "proxy 404", "proxy 409", "proxy 410", "proxy 413", "proxy 414", "proxy 422",
]  # fmt: skip

FAULTS: tuple[Fault, ...] = (
    "refused", "dropped before", "dropped after", "timeout before", "timeout after", "429", "429 wait", "503", "503 wait",
    "500", "502", "408", "html 200", "truncated", "slow",
    "proxy 400", "proxy 404", "proxy 409", "proxy 413", "proxy 422",
)  # fmt: skip
"""Faults of single requests."""

OUTAGES: tuple[Fault, ...] = (
    "refused",
    "refused",
    "timeout before",
    "503",
    "503 wait",
    "502",
    "500",
    "401",
    "403",
    "429 wait",
)
"""Faults of every request for a while."""

READ_SECONDS = 10.0


class RecordingStore(Store):
    """Keeps the order in which each key got its values. ``written`` is called with the sink's label, the key and the value."""

    def __init__(self, *, mass_creates: bool, written: Callable[[str, str, str | None], None]) -> None:
        super().__init__(mass_creates=mass_creates)
        self._written = written
        self._made = 0

    def create_sink(self, workspace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self._made += 1
        return super().create_sink(workspace, {**body, "id": f"00000000-0000-4000-8000-{self._made:012d}"})

    def _apply(self, change: dict[str, Any]) -> None:
        label = self.sinks.get(change.get("sink") or change["record"].get("dataSinkId", ""), {}).get("label", "")
        super()._apply(change)
        match change["do"]:
            case "sink":
                for entry in change["entries"]:
                    self._written(change["record"]["label"], entry["key"], entry["value"])
            case "entry":
                self._written(label, change["record"]["key"], change["record"]["value"])
            case "drop entry":
                self._written(label, change["key"], None)


@dataclass(slots=True, kw_only=True)
class SimulatedService(httpx.AsyncBaseTransport):
    """Answers after a latency. ``share`` of the requests meet one of ``kinds``; during an ``outage`` all of them do."""

    chance: random.Random
    inner: BulkService
    tell: Callable[[str], None]
    latency_seconds: float = 0.01
    share: float = 0.0
    kinds: Sequence[Fault] = ()
    outage: Fault | None = None
    requests: int = 0
    writes: int = 0
    on_the_way: dict[int, httpx.Request] = field(default_factory=dict)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests += 1
        number = self.requests
        fault = self.outage
        if fault is None and self.chance.random() < self.share:
            fault = self.chance.choice(self.kinds)
        self.tell(f"→ #{number} {self._words(request)}" + (f"  ({fault})" if fault else ""))
        self.on_the_way[number] = request
        try:
            response = await self._answer(number, request, fault)
        except httpx.HTTPError as error:
            self.tell(f"← #{number} {type(error).__name__}")
            raise
        finally:
            self.on_the_way.pop(number, None)
        self.tell(f"← #{number} {response.status_code}")
        return response

    async def _answer(self, number: int, request: httpx.Request, fault: Fault | None) -> httpx.Response:
        if fault == "refused":
            raise httpx.ConnectError("refused")
        await self._latency()
        # A service that died while the request was on the way does not answer it.
        if fault is None and self.outage == "refused":
            raise httpx.ReadError("reset")
        if fault is not None and (response := await self._kept_from(fault)) is not None:
            return response
        response = self.commit(number, request)
        await self._latency()
        return response if fault is None else await self._spoiled(fault, response)

    async def _kept_from(self, fault: Fault) -> httpx.Response | None:
        """What comes instead, before the service sees the request; None: the fault lets it through."""
        match fault:
            case "dropped before":
                raise httpx.ReadError("reset")
            case "timeout before":
                await asyncio.sleep(READ_SECONDS)
                raise httpx.ReadTimeout("no answer")
            case "429 wait" | "503 wait":
                return _problem(int(fault[:3]), {"Retry-After": str(self.chance.randint(0, 8))})
            case "429" | "503" | "500" | "502" | "408" | "401" | "403":
                return _problem(int(fault), {})
            case "proxy 400" | "proxy 404" | "proxy 409" | "proxy 410" | "proxy 413" | "proxy 414" | "proxy 422":
                page = "<html>Error</html>" if self.chance.random() < 0.5 else ""
                return httpx.Response(int(fault.removeprefix("proxy ")), html=page)
            case "html 200":
                return httpx.Response(200, html="<html>Sign in</html>")
            case "slow":
                await asyncio.sleep(self.chance.random() * READ_SECONDS)
        return None

    async def _spoiled(self, fault: Fault, response: httpx.Response) -> httpx.Response:
        """What is left of the answer of a service that has done what was asked."""
        match fault:
            case "dropped after":
                raise httpx.RemoteProtocolError("closed")
            case "timeout after":
                await asyncio.sleep(READ_SECONDS)
                raise httpx.ReadTimeout("no answer")
            case "truncated":
                return httpx.Response(response.status_code, content=response.content[: len(response.content) // 2])
        return response

    def commit(self, number: int, request: httpx.Request) -> httpx.Response:
        """Carry a request out, at one moment."""
        self.on_the_way.pop(number, None)
        self.writes += request.method != "GET"
        response = run_inline(self.inner.handle_async_request(request))
        self.inner.requests.clear()
        return response

    def client_died(self) -> None:
        """What was on the way arrives, or does not."""
        for number, request in list(self.on_the_way.items()):
            if self.chance.random() < 0.5:
                self.tell(f"  #{number} arrives although its sender was killed")
                self.commit(number, request)
        self.on_the_way.clear()

    async def _latency(self) -> None:
        await asyncio.sleep(self.latency_seconds * (0.5 + self.chance.random()))

    def _words(self, request: httpx.Request) -> str:
        """The request in a line, without ids."""
        segments = request.url.path.split("/")[3:]
        sink = self.inner.store.sinks.get(segments[2] if len(segments) > 2 else "", {}).get("label", "")
        body = json.loads(request.content) if request.content else None
        items = body if isinstance(body, list) else [] if body is None else [body, *body.get("entries", [])]
        sent = " ".join(f"{item['key']}={item.get('value', '✗')}" for item in items if "key" in item)
        name = body.get("label", "") if isinstance(body, dict) else ""
        return " ".join(word for word in (request.method, "/".join(segments[3:]), sink or name, sent) if word)


def _problem(status: int, headers: dict[str, str]) -> httpx.Response:
    content = json.dumps({"type": "about:blank", "title": "Fault", "status": status, "error": "Fault"}).encode()
    return httpx.Response(status, headers={"Content-Type": "application/problem+json", **headers}, content=content)

"""The simulated service: the rules of a real one in memory, and every fault of a network and its proxies."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import httpx

from tests.simulation.leases import LeaseTable, is_about_lease
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

_UNKNOWN_OUTCOMES: frozenset[Fault | None] = frozenset(
    {"dropped before", "timeout before", "502", "408", "html 200",
     "proxy 400", "proxy 404", "proxy 409", "proxy 410", "proxy 414", "proxy 422"}
)  # fmt: skip
"""Faults after which a proxy or a frozen host may still have the request."""

READ_SECONDS = 10.0


class RecordingStore(Store):
    """Records the order in which each key got its values. ``written`` receives the sink's label, the key and the value."""

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
    """Responds after a latency. ``share`` of the requests have one of ``kinds``; during an ``outage`` all of them have it.

    If the service fences writers, some of the writes that got no response arrive later: at any time, and after newer ones.

    Requests name their process by the extension ``process``. ``leases``: of writers; None: the service has none. Processes in
    ``cut_off`` get no response. ``sent`` is called with a request when it leaves its process, ``committed`` with the request and
    the response when it was applied.
    """

    random_numbers: random.Random
    inner: BulkService
    trace: Callable[[str], None]
    latency_seconds: float = 0.01
    share: float = 0.0
    kinds: Sequence[Fault] = ()
    outage: Fault | None = None
    requests: int = 0
    writes: int = 0
    in_flight: dict[int, httpx.Request] = field(default_factory=dict)
    late: dict[int, tuple[float, httpx.Request]] = field(default_factory=dict)
    """With the earliest time of the arrival."""
    late_arrivals: int = 0
    leases: LeaseTable | None = None
    hold_seconds: float = 0.0
    """Writes that are late with leases arrive within this time, most of them after a take-over."""
    cut_off: set[object] = field(default_factory=set)
    responses: dict[int, httpx.Response] = field(default_factory=dict)
    """To requests that were applied while their process was frozen."""
    sent: Callable[[httpx.Request], None] = lambda _: None
    committed: Callable[[httpx.Request, httpx.Response], None] = lambda _request, _response: None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.sent(request)
        self.requests += 1
        number = self.requests
        fault = "timeout before" if request.extensions.get("process") in self.cut_off else self.outage
        if fault is None and self.random_numbers.random() < self.share:
            fault = self.random_numbers.choice(self.kinds)
        self.trace(f"→ #{number} {self._description(request)}" + (f"  ({fault})" if fault else ""))
        self.in_flight[number] = request
        try:
            response = await self._respond(number, request, fault)
        except httpx.HTTPError as error:
            self.trace(f"← #{number} {type(error).__name__}")
            raise
        finally:
            self.in_flight.pop(number, None)
        self.trace(f"← #{number} {response.status_code}")
        return response

    async def _respond(self, number: int, request: httpx.Request, fault: Fault | None) -> httpx.Response:
        if fault == "refused":
            raise httpx.ConnectError("refused")
        await self._latency()
        # A service that died in the meantime does not respond.
        if fault is None and self.outage == "refused":
            self._hold(number, request)
            raise httpx.ReadError("reset")
        if fault in _UNKNOWN_OUTCOMES:
            self._hold(number, request)
        if fault is not None and (response := await self._response_before(fault)) is not None:
            return response
        response = self.responses.pop(number, None) or self.commit(number, request)
        self.let_arrive(0.5)
        await self._latency()
        return response if fault is None else await self._response_after(fault, response)

    async def _response_before(self, fault: Fault) -> httpx.Response | None:
        """Return a response that a fault sends instead of the service; None if the request reaches the service."""
        match fault:
            case "dropped before":
                raise httpx.ReadError("reset")
            case "timeout before":
                await asyncio.sleep(READ_SECONDS)
                raise httpx.ReadTimeout("no response")
            case "429 wait" | "503 wait":
                return _problem(int(fault[:3]), {"Retry-After": str(self.random_numbers.randint(0, 8))})
            case "429" | "503" | "500" | "502" | "408" | "401" | "403":
                return _problem(int(fault), {})
            case "proxy 400" | "proxy 404" | "proxy 409" | "proxy 410" | "proxy 413" | "proxy 414" | "proxy 422":
                page = "<html>Error</html>" if self.random_numbers.random() < 0.5 else ""
                return httpx.Response(int(fault.removeprefix("proxy ")), html=page)
            case "html 200":
                return httpx.Response(200, html="<html>Sign in</html>")
            case "slow":
                await asyncio.sleep(self.random_numbers.random() * READ_SECONDS)
        return None

    async def _response_after(self, fault: Fault, response: httpx.Response) -> httpx.Response:
        """Return what a fault leaves of the response to a request that was applied."""
        match fault:
            case "dropped after":
                raise httpx.RemoteProtocolError("closed")
            case "timeout after":
                await asyncio.sleep(READ_SECONDS)
                raise httpx.ReadTimeout("no response")
            case "truncated":
                return httpx.Response(response.status_code, content=response.content[: len(response.content) // 2])
        return response

    def _hold(self, number: int, request: httpx.Request) -> None:
        """Keep a write that its sender has given up on: a proxy or a frozen host may still have it."""
        if self.inner.fence and request.method != "GET" and self.random_numbers.random() < 0.7:
            earliest = 0.0
            if self.leases is not None:
                earliest = self.leases.now() + self.random_numbers.random() * self.hold_seconds
            self.late[number] = earliest, request

    def let_arrive(self, share: float) -> None:
        """Apply a share of the writes that were held; with 1, all of them."""
        now = self.leases.now() if self.leases is not None else 0.0
        for number, (earliest, request) in list(self.late.items()):
            if (earliest <= now and self.random_numbers.random() < share) or share == 1.0:
                self.late_arrivals += 1
                response = self.commit(number, request)
                if request.extensions.get("process") is not None:
                    self.responses[number] = response
                self.trace(f"  #{number} arrives late: {response.status_code}")

    def release_held(self) -> None:
        """Have the writes that were held arrive from now on."""
        self.late = {number: (0.0, request) for number, (_, request) in self.late.items()}

    def commit(self, number: int, request: httpx.Request) -> httpx.Response:
        """Apply a request atomically."""
        self.in_flight.pop(number, None)
        self.late.pop(number, None)
        if self.leases is not None and is_about_lease(request):
            response = self.leases.respond(request)
        else:
            self.writes += request.method != "GET"
            response = run_inline(self.inner.handle_async_request(request))
            self.inner.requests.clear()
        self.committed(request, response)
        return response

    def client_died(self, process: object = None) -> None:
        """Apply some requests in flight of a killed process; the other requests arrive later or never."""
        for number, request in self._in_flight_of(process):
            del self.in_flight[number]
            if self.random_numbers.random() < 0.5:
                self.trace(f"  #{number} arrives although its sender was killed")
                self.commit(number, request)
            else:
                self._hold(number, request)

    def client_froze(self, process: object) -> None:
        """Apply some requests in flight of a process that is frozen; the other requests arrive later, or when it continues."""
        for number, request in self._in_flight_of(process):
            if self.random_numbers.random() < 0.1:
                self.trace(f"  #{number} arrives although its sender is frozen")
                self.responses[number] = self.commit(number, request)
            else:
                self._hold(number, request)

    def _in_flight_of(self, process: object) -> list[tuple[int, httpx.Request]]:
        return [one for one in self.in_flight.items() if one[1].extensions.get("process") is process]

    async def _latency(self) -> None:
        await asyncio.sleep(self.latency_seconds * (0.5 + self.random_numbers.random()))

    def _description(self, request: httpx.Request) -> str:
        """Describe the request in a line, without ids."""
        if is_about_lease(request):
            return f"{request.method} lease {request.url.path.rpartition('/')[2] if request.method == 'POST' else ''}"
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

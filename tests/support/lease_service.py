"""A simulated service that has the lease of one writer, and a clock that a test sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx

from ingestd.client.service import ServiceClient
from ingestd.standby.lease import Lease
from ingestd.standby.service_leases import ServiceLeases
from ingestd.telemetry import Emit

Respond = Callable[[httpx.Request], httpx.Response]


class LeaseService:
    """Responds to requests about the lease. ``now``: the service's clock, an hour ahead of all other clocks."""

    def __init__(self) -> None:
        self.holder, self.epoch, self.left = "", 1, 0
        self.now = "2026-11-27T10:00:00.000Z"
        self.respond: Respond = self.lease
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return self.respond(request)

    def lease(self, request: httpx.Request) -> httpx.Response:
        given = json.loads(request.content) if request.content else {}
        self.requests.append(given)
        if request.method == "GET":
            return self.record() if self.holder else lease_problem(404, "lease_not_found")
        if "epoch" in given and (given["holder"], given["epoch"]) != (self.holder, self.epoch):
            return lease_problem(409, "lease_lost")
        if request.method == "PUT" and "epoch" not in given:
            if self.left and self.holder != given["holder"]:
                return lease_problem(409, "lease_held")
            self.holder, self.epoch = given["holder"], self.epoch + 1
        self.left = 0 if request.method == "POST" else given["seconds"] * 1_000
        return self.record()

    def record(self) -> httpx.Response:
        found = {"holder": self.holder, "epoch": self.epoch, "millisecondsLeft": self.left, "now": self.now}
        return httpx.Response(200, json={**found, "writer": "w", "successor": None})


def lease_problem(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "error": code}, headers={"X-Error-Code": code})


class SetClock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def lease_of(
    service: LeaseService, clock: SetClock, emit: Emit, *, holder: str = "one", writer: str = "w", seconds: int = 10
) -> Lease:
    """Return the lease as a process sees it."""
    transport = httpx.MockTransport(service)
    client = ServiceClient(url="http://service", api_key="key", client_id="test", transport=transport)
    return Lease(ServiceLeases(client), writer=writer, holder=holder, seconds=seconds, emit=emit, clock=clock)

"""Leases of writers of the simulated service (contract M14), by its clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from ingestd.wire.writer import Writer


def is_about_lease(request: httpx.Request) -> bool:
    """Return whether a request is one of WL1 to WL4."""
    return request.url.path.startswith("/v1/writer-leases/")


@dataclass(slots=True, kw_only=True)
class LeaseTable:
    """The lease of the only writer. ``now``: seconds since the epoch; ``raise_writer`` is called with each granted epoch.

    ``ends``: for each epoch until when its holder may send.
    """

    now: Callable[[], float]
    raise_writer: Callable[[Writer], None]
    holder: str = ""
    epoch: int = 1
    successor: str = ""
    ends_at: float = 0.0
    ends: dict[int, float] = field(default_factory=dict)

    def respond(self, request: httpx.Request) -> httpx.Response:
        """Apply a request atomically."""
        _, _, _, writer, *action = request.url.path.split("/")
        given: dict[str, Any] = json.loads(request.content) if request.content else {}
        if not self.holder and (request.method == "GET" or action == ["successor"]):
            return _problem(404, "lease_not_found")
        if "epoch" in given and (given["holder"], given["epoch"]) != (self.holder, self.epoch):
            return _problem(409, "lease_lost")
        match request.method, action:
            case "PUT", []:
                if "epoch" not in given:
                    if self.ends_at > self.now() and self.holder != given["holder"]:
                        return _problem(409, "lease_held")
                    self.holder, self.epoch, self.successor = given["holder"], self.epoch + 1, ""
                    self.raise_writer(Writer(name=writer, epoch=self.epoch, attempt=0))
                self.ends_at = self.ends[self.epoch] = self.now() + given["seconds"]
            case "POST", ["release"]:
                self.ends[self.epoch] = self.ends_at = self.now()
                if self.successor:
                    self.holder, self.successor = self.successor, ""
                    self.ends_at += given["reservedSeconds"]
            case "POST", ["successor"]:
                self.successor = given["holder"]
        record = {
            "writer": writer, "holder": self.holder, "epoch": self.epoch, "successor": self.successor or None,
            "millisecondsLeft": max(0, int((self.ends_at - self.now()) * 1_000)), "now": stamp(self.now()),
        }  # fmt: skip
        return httpx.Response(200, json=record)


def stamp(at: float) -> str:
    """Return a time in the form of the service (contract G3)."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _problem(status: int, code: str) -> httpx.Response:
    content = {"type": "about:blank", "title": code, "status": status, "error": code, "code": code}
    return httpx.Response(status, json=content, headers={"Content-Type": "application/problem+json"})

"""Hosts of one configuration in one process. Each has a state file. They share a service and a place for shipments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ingestd.mirror.sqlite import SqliteMirror, back_up_state, restore_state
from ingestd.settings.standby import StandbySettings
from ingestd.standby.identity import LeaseKind
from ingestd.standby.place import open_place
from ingestd.standby.seal import Seal
from ingestd.standby.shipments import Shipments
from ingestd.standby.standby import Standby, StateFiles
from ingestd.telemetry import Event
from tests.support.lease_service import LeaseService, SetClock, lease_of

ChooseLease = Callable[[str], Awaitable[LeaseKind]]


class StandbySite:
    """A place for shipments, a service, and hosts that each have a state file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.service, self.clock = folder, LeaseService(), SetClock()
        self.events: list[Event] = []
        self.prepared = asyncio.Queue[str]()
        """Receives the name of each host that has prepared for a take-over."""

    def state(self, host: str) -> Path:
        return self.folder / host / "s.db"

    def create_state(self, host: str) -> None:
        self.state(host).parent.mkdir()
        SqliteMirror.open(self.state(host)).close()

    def start(
        self,
        host: str,
        *,
        pipelines: tuple[str, ...] = ("p",),
        place: str = "place",
        choose_lease: ChooseLease | None = None,
        key: bytes | None = None,
    ) -> Standby:
        """Return the standby process of a host, which does not run yet. ``key``: reports of unusable shipments are ignored."""
        state = self.state(host)
        used = open_place(place, StandbySettings(), base=self.folder)
        return Standby(
            StateFiles(
                state=state,
                pipelines=lambda: pipelines,
                back_up=lambda target: back_up_state(state, target),
                restore=lambda file: restore_state(state, file),
            ),
            used,
            Shipments(used, Seal(key), keep=3, on_unusable=pytest.fail if key is None else lambda _sentence: None),
            make_lease=lambda identity, record: lease_of(
                self.service, self.clock, self.events.append, holder=record.holder, writer=identity.writer
            ),
            choose_lease=choose_lease or _in_the_service,
            prepare=lambda: self.prepared.put(host),
            ship_seconds=30,
            emit=self.events.append,
        )

    async def run(self, host: str, *, shipments: int = 1) -> Standby:
        """Make a host take the lease, ship ``shipments`` times, and leave."""
        process = self.start(host)
        await process.run_until_active()
        for _ in range(shipments - 1):
            await process.ship()
        await process.leave()
        return process


async def _in_the_service(_writer: str) -> LeaseKind:
    return "service"

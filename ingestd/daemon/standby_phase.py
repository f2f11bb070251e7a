"""The phases of a daemon with `--standby`: before it is active, while it is active, and its end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ingestd.client.service import ServiceClient
from ingestd.daemon.assembly import Assembly
from ingestd.daemon.configuration import Configuration
from ingestd.daemon.control.message import ReadStatus, StatusText
from ingestd.daemon.control.refusal import RequestRefused
from ingestd.daemon.control.requests import (
    ControlStandby,
    Explain,
    ReadNotices,
    Request,
    Response,
    StandbyControlled,
)
from ingestd.daemon.control.server import ControlServer
from ingestd.daemon.heartbeat import Heartbeat
from ingestd.daemon.kept_files import read_kept, remove_unused, restore_kept
from ingestd.daemon.parts import connect_service
from ingestd.daemon.shutdown import Shutdown
from ingestd.daemon.status_text import format_standby
from ingestd.mirror.sqlite import back_up_state, lock_state, restore_state
from ingestd.process.deferred_imports import complete_imports
from ingestd.process.postgres_address import names_database
from ingestd.schedule import boot_time
from ingestd.settings.listen import ListenSettings
from ingestd.settings.standby import read_encryption_key
from ingestd.standby.database_url import schema_of
from ingestd.standby.gate import SinkGate
from ingestd.standby.host_record import HostRecord
from ingestd.standby.identity import LeaseKind, SharedIdentity
from ingestd.standby.lease import Lease
from ingestd.standby.mistake import standby_mistake
from ingestd.standby.place import Place, open_place
from ingestd.standby.seal import Seal
from ingestd.standby.service_leases import ServiceLeases
from ingestd.standby.shipments import Shipments
from ingestd.standby.standby import Standby, StateFiles, remove_leftovers
from ingestd.standby.status import StandbyStatus
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.standby import ShipmentUnusable

if TYPE_CHECKING:
    from ingestd.standby.database_leases import DatabaseLeases

ServeStandby: TypeAlias = Callable[[ListenSettings, Callable[[], StandbyStatus]], Coroutine[None, None, None]]

_ALIVE_SECONDS = 2.0
_AHEAD = 4
"""The maximum number of sinks that are read ahead. Each sink needs a temporary file until it is compared."""
_COUNTED = 1_000_000


class StandbyPhase:
    """A daemon with `--standby`. ``url``: the place where shipments are stored. ``serve`` serves the listener of a standby.

    A simulation passes its own ``client``, ``place``, ``clock`` (see `Lease`) and ``now`` (see `Standby`).

    Raises:
        ConfigurationError: the place or the encryption key can't be used.
    """

    leave_seconds = 8.0
    """The time for the last shipment, in addition to the time of the drain."""

    def __init__(
        self,
        configuration: Configuration,
        url: str,
        *,
        emit: Emit,
        serve: ServeStandby,
        client: ServiceClient | None = None,
        place: Place | None = None,
        clock: Callable[[], float] = boot_time,
        now: Callable[[], float] = time.time,
    ) -> None:
        settings, found = configuration.settings, configuration.settings.standby
        key = read_encryption_key(found.encryption_key) if found.encryption_key is not None else None
        place = place or open_place(url, found, base=configuration.base)
        self._state, self._listen, self._emit, self._serve = settings.state, settings.listen, emit, serve
        self._client = client or connect_service(settings, emit=emit)
        self._leases, self._seconds = ServiceLeases(self._client), found.lease_seconds
        self._database_leases: DatabaseLeases | None = None
        if names_database(url):
            from ingestd.standby.database_leases import DatabaseLeases  # noqa: PLC0415 - of an extra

            self._database_leases = DatabaseLeases(schema_of(url), seconds=found.lease_seconds)
        self._place, self._clock = place, clock
        self._lock: int | None = None
        self.standby = Standby(
            StateFiles(
                state=settings.state,
                pipelines=lambda: [pipeline.name for pipeline in settings.pipelines],
                back_up=lambda target: back_up_state(settings.state, target, kept=lambda: read_kept(settings.state)),
                restore=self._restore,
            ),
            place,
            Shipments(
                place,
                Seal(key),
                keep=found.keep,
                on_unusable=lambda sentence: emit(ShipmentUnusable(sentence=sentence)),
            ),
            make_lease=self._make_lease,
            choose_lease=self._choose_lease,
            prepare=self._prepare,
            ship_seconds=found.ship_seconds,
            emit=emit,
            now=now,
        )

    async def wait(self, shutdown: Shutdown, heartbeat: Heartbeat, stack: AsyncExitStack) -> bool:
        """Wait until this daemon is active. Return False if a stop is requested first.

        The cleanup calls are added to ``stack``, so they run last.

        Raises:
            ConfigurationError: the service has no leases, or the shipments belong to another configuration.
            MirrorError: another process holds the state file, or the state file can't be replaced.
        """
        stack.push_async_callback(self._client.aclose)
        stack.push_async_callback(asyncio.to_thread, self._place.close)
        if self._database_leases is not None:
            stack.callback(self._database_leases.close)
        # The lock keeps other processes from using the state file and its control socket.
        self._state.parent.mkdir(parents=True, exist_ok=True)
        self._lock = await asyncio.to_thread(lock_state, self._state)
        try:
            await asyncio.to_thread(remove_leftovers, self._state)
            waiting = asyncio.create_task(self.standby.run_until_active(), name="standby")
            asked: asyncio.Task[object] = asyncio.create_task(shutdown.asked.wait(), name="signal")
            side_tasks: list[asyncio.Task[None]] = [
                asyncio.create_task(self._report(heartbeat), name="heartbeat"),
                asyncio.create_task(
                    ControlServer(self._state, perform=self._perform, emit=self._emit).run(), name="control socket"
                ),
            ]
            if self._listen is not None:
                side_tasks.append(asyncio.create_task(self._serve(self._listen, self.standby.status), name="listener"))
            try:
                await asyncio.wait([waiting, asked, *side_tasks], return_when=asyncio.FIRST_COMPLETED)
                is_active = waiting.done() and not shutdown.asked.is_set()
                for task in (waiting, *side_tasks):
                    if task.done():
                        task.result()
            finally:
                for one in (waiting, asked, *side_tasks):
                    one.cancel()
                await asyncio.wait([waiting, asked, *side_tasks])
        finally:
            self._unlock()
        if waiting.done() and not waiting.cancelled():  # also if a stop was requested at the same time
            stack.push_async_callback(self._leave, shutdown)
        return is_active

    async def _choose_lease(self, writer: str) -> LeaseKind:
        """Return where the lease of a new place is stored.

        It is "database" if the place is a database and the service offers no leases; else "service".
        """
        if self._database_leases is None or await self._leases.are_offered(writer):
            return "service"
        return "database"

    def _make_lease(self, identity: SharedIdentity, record: HostRecord) -> Lease:
        store = self._database_leases if identity.lease == "database" else self._leases
        if store is None:
            raise standby_mistake(f"{self._place.shown} is a copy of a place in a database. Use another place.")
        return Lease(
            store,
            writer=identity.writer,
            holder=record.holder,
            seconds=self._seconds,
            known_epoch=record.epoch,
            emit=self._emit,
            clock=self._clock,
        )

    def attach(self, assembly: Assembly, shutdown: Shutdown) -> Callable[[], Coroutine[None, None, None]]:
        """Connect the parts of a daemon. Return a function that keeps the lease and ships the state until it is cancelled."""
        standby = self.standby
        pending: set[asyncio.Task[None]] = set()

        def note_opened() -> None:
            task = asyncio.create_task(standby.note_opened())
            pending.add(task)
            task.add_done_callback(pending.discard)

        async def perform(request: Request, by: str) -> Response:
            if isinstance(request, ControlStandby):
                return self._control_active(request, shutdown)
            response = await assembly.command_handler.perform(request, by)
            if not isinstance(request, ReadStatus | ReadNotices | Explain):
                await standby.ship_soon()
            return response

        standby.gate.on_open = note_opened
        # After a shipment, sources need not keep the shipped data.
        standby.on_shipped = assembly.supervisor.on_acknowledged
        assembly.perform = perform

        async def keep() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(standby.keep(shutdown.ask), name="lease and shipments")
                ahead = assembly.part_supervisor("sinks", lambda: _read_ahead(assembly, standby.gate))
                group.create_task(ahead, name="sinks")

        return keep

    async def _prepare(self) -> None:
        """Import the libraries of an active daemon in advance. The imports take longer than the comparison of a small sink."""
        await asyncio.to_thread(complete_imports)
        self._client.prepare()

    async def _leave(self, shutdown: Shutdown) -> None:
        shutdown.step = "shipping the state file"
        await self.standby.leave()

    def _restore(self, shipment: Path) -> Path | None:
        self._unlock()  # the restoration locks the state file itself
        replaced = restore_state(self._state, shipment, restore_kept=lambda files: restore_kept(self._state, files))
        remove_unused(self._state, ())
        return replaced

    def _unlock(self) -> None:
        if self._lock is not None:
            lock, self._lock = self._lock, None
            os.close(lock)

    async def _report(self, heartbeat: Heartbeat) -> None:
        """Keep the service manager informed, until cancelled."""
        shown = ""
        while True:
            status = self.standby.status()
            line = f"Standby; {status.holder or 'no daemon'} is active."
            if line != shown:
                shown = line
                heartbeat.ready(line)
            heartbeat.alive()
            await asyncio.sleep(_ALIVE_SECONDS)

    async def _perform(self, request: Request, _by: str) -> Response:
        """Execute a request while this daemon is a standby."""
        standby = self.standby
        match request:
            case ReadStatus():
                return StatusText(text=format_standby(standby.status(), as_json=request.as_json))
            case ControlStandby(action="status"):
                return StandbyControlled(text=format_standby(standby.status(), as_json=request.as_json))
            case ControlStandby(action="promote"):
                refusal = await standby.lease.ask() if standby.lease is not None else "The lease is not known yet."
                holder = standby.status().holder
                text = (
                    refusal
                    or f"{holder} was asked to release the lease. This daemon takes over when the lease is"
                    " released, or when that daemon ends."
                )
                return StandbyControlled(text=text, is_done=not refusal)
            case ControlStandby():
                return StandbyControlled(text="This daemon is a standby, so it has nothing to release.", is_done=False)
        raise RequestRefused(standby.status().refusal)

    def _control_active(self, request: ControlStandby, shutdown: Shutdown) -> StandbyControlled:
        match request.action:
            case "status":
                return StandbyControlled(text=format_standby(self.standby.status(), as_json=request.as_json))
            case "promote":
                return StandbyControlled(text="This daemon is active already.", is_done=False)
            case "step_down":
                self.standby.leave_because("An operator requested that it steps down.", shutdown.ask)
        return StandbyControlled(
            text="This daemon ships its state, releases the lease, and ends. A standby takes over."
        )


async def _read_ahead(assembly: Assembly, gate: SinkGate) -> None:
    """While sources are read, read the largest sinks that must be compared before entries are sent to them."""
    count = assembly.mirror.status.entries_of
    entries = {sink: await asyncio.to_thread(count, sink, limit=_COUNTED) for sink in gate.closed}
    for sink in sorted(entries, key=entries.__getitem__, reverse=True)[:_AHEAD]:
        await assembly.checker.read_ahead(sink, is_open=partial(gate.is_open, sink))

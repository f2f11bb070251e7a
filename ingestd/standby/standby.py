"""One host of a configuration: it waits for the lease, restores the newest shipment, ships its state, releases the lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from ingestd.core.address import SinkAddress
from ingestd.core.clock import moment
from ingestd.core.errors import IngestdError, MirrorError
from ingestd.mirror.sqlite import acknowledgeable_partitions, state_exists, unopenable
from ingestd.standby.gate import SinkGate
from ingestd.standby.host_record import HostRecord, read_record, write_record
from ingestd.standby.identity import LeaseKind, SharedIdentity, shared_identity
from ingestd.standby.lease import Lease
from ingestd.standby.lease_store import LeaseUnavailable
from ingestd.standby.mistake import standby_mistake
from ingestd.standby.place import Place, PlaceUnavailable
from ingestd.standby.shipments import ShipmentManifest, Shipments, ShipmentsUnreadable, ShippingStopped
from ingestd.standby.status import Role, StandbyStatus
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.standby import (
    LeaseInDatabase,
    LeaseLost,
    LeaseTaken,
    LeaseUnconfirmed,
    ShipmentFailed,
    ShipmentResumed,
    SinksReadBack,
    StandbyWaiting,
)
from ingestd.wire.writer import Writer

FIRST_EPOCH = 2
"""The epoch of the first lease; other hosts get the state file of its holder. A daemon without a lease has the epoch 1."""

_LOOK_SECONDS = 2.5
"""The longest interval between two checks of another process's lease."""
_SOON_SECONDS = 10.0
"""How long a command waits for the shipment of its changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFiles:
    """The state file of this host, and the functions that copy and replace the state file together with its kept files.

    ``back_up`` makes a copy. ``restore`` replaces the state file by a copy, and returns the path of the former state file.
    """

    state: Path
    pipelines: Callable[[], Iterable[str]]
    back_up: Callable[[Path], int]
    restore: Callable[[Path], Path | None]


class Standby:
    """One host of a configuration with several daemons. Only one daemon is active.

    Await `run_until_active`, then `keep` while the daemon runs, and `leave` after its state file is closed. ``make_lease`` gets
    the identity of all hosts and the record of this host. ``choose_lease`` gets the name of the writer, and returns where the
    writer's lease is stored. It may raise `LeaseUnavailable`. ``prepare`` is called once, while another daemon is active. It
    does work that would otherwise delay a take-over.
    """

    def __init__(
        self,
        files: StateFiles,
        place: Place,
        shipments: Shipments,
        *,
        make_lease: Callable[[SharedIdentity, HostRecord], Lease],
        choose_lease: Callable[[str], Awaitable[LeaseKind]],
        prepare: Callable[[], Awaitable[None]],
        ship_seconds: float,
        emit: Emit,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._place = place
        self._shipments = shipments
        self._make_lease = make_lease
        self._choose_lease = choose_lease
        self._prepare = prepare
        self._ship_seconds = ship_seconds
        self._emit = emit
        self._now = now
        self._record = HostRecord(holder="")
        self.lease: Lease | None = None
        self._keeping: asyncio.Task[None] | None = None
        self.gate = SinkGate()
        self.role: Role = "standby"
        self.ends_because = ""
        """Why the daemon ends: another daemon must take over, or has taken over. Empty if it need not end."""
        self.on_shipped: Callable[[], None] = lambda: None
        self._shipped: frozenset[tuple[int, str]] = frozenset()
        self._newest: ShipmentManifest | None = None
        self._newest_failure = ""
        self._number = 0
        self._shipping = asyncio.Lock()
        self._began = 0.0

    async def run_until_active(self) -> None:
        """Wait for the lease, take it, and restore the newest shipment, unless the state file is newer. Can be cancelled.

        Raises:
            ConfigurationError: the service has no leases, or the shipments are of another configuration or another key.
            MirrorFull: the disk is full. The lease is released, and a later start may succeed.
            MirrorError: the state file can't be replaced.
        """
        self._record = await asyncio.to_thread(read_record, self._files.state)
        identity = await self._identity()
        lease = self.lease = self._make_lease(identity, self._record)
        reported = ""
        while True:
            while not await lease.try_to_take():
                await self._look_at_shipments()
                view = lease.view
                if view.holder and view.holder != reported:
                    is_first, reported = not reported, view.holder
                    self._emit(StandbyWaiting(holder=view.holder, epoch=view.epoch))
                    if is_first:
                        await self._prepare()
                left = lease.view.left_seconds or 1.0
                await asyncio.sleep(min(left + 0.02, _LOOK_SECONDS, lease.seconds / 4))
            self._began = time.monotonic()
            self._keeping = asyncio.create_task(lease.keep(), name="lease")
            try:
                restored = await self._restore(lease.epoch)
            except BaseException:
                self._keeping.cancel()
                await lease.release()
                raise
            if not lease.lost:
                break
            lease = self.lease = self._make_lease(identity, self._record)
        self.role = "active"
        self._emit(LeaseTaken(epoch=lease.epoch, holder=lease.holder, restored=restored))

    async def _identity(self) -> SharedIdentity:
        """Return the identity that all hosts share; the first host decides it."""
        record = self._record
        while True:
            try:
                found = await shared_identity(self._place, record.writer, choose_lease=self._choose_lease)
            except (PlaceUnavailable, LeaseUnavailable) as error:
                if record.writer:  # known from an earlier start
                    self._newest_failure = str(error)
                    return SharedIdentity(writer=record.writer, lease=record.lease)
                self._note_failure(error)
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            break
        self._newest_failure = ""
        if record.writer not in {"", found.writer}:
            raise standby_mistake(
                f"{self._place.shown} belongs to another configuration than the state file {self._files.state}."
            )
        await asyncio.to_thread(self._keep_record, writer=found.writer, lease=found.lease)
        if found.lease == "database":
            self._emit(LeaseInDatabase(place=self._place.shown))
        return found

    def _note_failure(self, error: IngestdError | OSError) -> None:
        """Emit an event for the first of consecutive failures of the place, or of the service that may have the lease."""
        sentence = str(error)
        if not self._newest_failure:
            is_about_lease = isinstance(error, LeaseUnavailable)
            self._emit(LeaseUnconfirmed(sentence=sentence) if is_about_lease else ShipmentFailed(sentence=sentence))
        self._newest_failure = sentence

    async def _look_at_shipments(self) -> None:
        try:
            self._newest = await asyncio.to_thread(self._shipments.newest)
        except PlaceUnavailable as error:
            self._newest_failure = str(error)
        else:
            self._newest_failure = ""

    async def _restore(self, epoch: int) -> str:
        """Replace the state file by the newest shipment, unless the state file is newer.

        Return the name of the restored shipment, or an empty text.
        """
        if epoch == FIRST_EPOCH or await asyncio.to_thread(self._is_newest_here, epoch):
            self._keep_record(epoch=epoch, shipped=0)
            return ""
        while True:
            try:
                found = await asyncio.to_thread(self._fetch)
            except PlaceUnavailable as error:
                self._note_failure(error)
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            break
        self._newest_failure = ""
        self._newest = found
        # Without a shipment, the entries that a former daemon has sent are unknown.
        self._keep_record(epoch=epoch, shipped=0, restored_at=found.at if found is not None else 0.0)
        return f"shipment {found.number} of epoch {found.epoch}, {moment(found.at)}" if found is not None else ""

    def _is_newest_here(self, epoch: int) -> bool:
        """Return whether the state file is the newest: no other host was active later, and the file is not an older copy."""
        record = self._record
        if record.epoch != epoch - 1 or not state_exists(self._files.state):
            return False
        try:
            newest = self._shipments.newest()
        except PlaceUnavailable:
            return True
        return newest is None or (newest.epoch, newest.number) <= (record.epoch, record.shipped)

    def _fetch(self) -> ShipmentManifest | None:
        target = self._files.state.with_name(f".{self._files.state.name}.shipment")
        names = set(self._files.pipelines())

        def check(manifest: ShipmentManifest) -> None:
            if manifest.pipelines and not names & set(manifest.pipelines):
                raise standby_mistake(
                    f"{self._place.shown} has shipments of other pipelines ({', '.join(manifest.pipelines[:5])}). Use a place of"
                    " its own for each configuration."
                )

        try:
            found = self._shipments.fetch(target, accepts=check)
            if found is not None:
                replaced = self._files.restore(target)
                if replaced is not None and self._record.epoch:  # epoch 0: never active, so the former file is kept
                    replaced.unlink(missing_ok=True)
        except ShipmentsUnreadable as error:
            # Without them, pending records and decisions are lost, and the next shipments would delete them.
            raise standby_mistake(str(error)) from error
        except OSError as error:
            raise unopenable(error, target) from error
        else:
            return found
        finally:
            target.unlink(missing_ok=True)

    def _keep_record(self, **changed: object) -> None:
        self._record = replace(self._record, **changed)
        write_record(self._files.state, self._record)

    @property
    def writer(self) -> Writer:
        """The writer of this process, without an attempt."""
        lease = self._held()
        return Writer(name=lease.writer, epoch=lease.epoch, attempt=0)

    @property
    def restored_at(self) -> float | None:
        """The time (of the service) up to which the state file has all sent entries; None: it has every sent entry."""
        return self._record.restored_at

    def close_sinks(self, sinks: Iterable[SinkAddress]) -> None:
        """Close the sinks of the configuration if the state file may lack entries that were sent to them."""
        self._shipped = frozenset()
        if self._record.restored_at is not None:
            self.gate = SinkGate(sinks)

    async def note_opened(self) -> None:
        """After the last sink was compared, record that the state file has all sent entries."""
        if not self.gate.closed and self._record.restored_at is not None:
            await asyncio.to_thread(self._keep_record, restored_at=None)
            self._emit(SinksReadBack(seconds=round(time.monotonic() - self._began, 3)))

    async def permit(self) -> None:
        """Wait until this process may send."""
        await self._held().permit()

    def may_acknowledge(self, partition: int, cursor: str) -> bool:
        """Return whether a shipment has the records of a partition, so that the source may delete them. Thread-safe."""
        return self.lease is not None and self.lease.may_send() and (partition, cursor) in self._shipped

    async def keep(self, leave: Callable[[str], None]) -> None:
        """Keep the lease and ship the state, until cancelled. ``leave`` is called with the reason why the daemon has to end."""
        lease = self._held()

        async def hold() -> None:
            await lease.wait_for_end()
            if lease.lost:
                self._emit(LeaseLost(sentence=lease.lost))
                self.leave_because(f"Another daemon has taken over: {lease.lost}", leave)
            else:
                self.leave_because(f"{lease.successor} asked for the lease.", leave)

        async with asyncio.TaskGroup() as group:
            group.create_task(hold(), name="lease")
            group.create_task(self._ship_periodically(), name="shipments")

    def leave_because(self, reason: str, leave: Callable[[str], None]) -> None:
        """End the daemon with a step-down, so that a standby becomes active. ``leave``: see `keep`."""
        self.ends_because = self.ends_because or reason
        leave("step-down")

    async def _ship_periodically(self) -> None:
        while True:
            await self.ship()
            await asyncio.sleep(self._ship_seconds)

    async def ship(self) -> None:
        """Ship the state file now. A failure is reported once, and the next shipment tries again."""
        async with self._shipping:
            lease = self._held()
            try:
                shipped = await asyncio.to_thread(self._ship, lease)
            except (PlaceUnavailable, MirrorError, OSError) as error:
                self._note_failure(error)
                return
            except ShippingStopped:
                return
            if self._newest_failure:
                self._newest_failure = ""
                self._emit(ShipmentResumed())
            self._shipped = shipped
            self.on_shipped()

    async def ship_soon(self) -> None:
        """Ship the changes of a command; return when they are shipped, or after some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SOON_SECONDS):
                await self.ship()

    def _ship(self, lease: Lease) -> frozenset[tuple[int, str]]:
        copy = self._files.state.with_name(f".{self._files.state.name}.shipping")
        copy.unlink(missing_ok=True)
        try:
            at = lease.service_time()
            self._files.back_up(copy)
            acknowledgeable = acknowledgeable_partitions(copy)
            self._number += 1
            self._newest = self._shipments.ship(
                copy, epoch=self.writer.epoch, number=self._number, at=at, pipelines=self._files.pipelines(),
                may_write=lease.may_ship,
            )  # fmt: skip
            self._keep_record(shipped=self._number)
            return acknowledgeable
        finally:
            copy.unlink(missing_ok=True)

    async def leave(self) -> None:
        """Unless the lease is lost, ship the closed state file and release the lease. After a step-down, await a new holder."""
        lease = self._held()
        if not lease.lost:
            await self.ship()
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if lease.lost:
            return
        await lease.release()
        self.role = "standby"
        if self.ends_because:
            with suppress(TimeoutError):
                async with asyncio.timeout(lease.seconds):
                    await lease.wait_for_other_holder()

    def _held(self) -> Lease:
        if self.lease is None:
            raise RuntimeError("run_until_active was not awaited")
        return self.lease

    def status(self) -> StandbyStatus:
        """Return the state of this host. Thread-safe."""
        view = self.lease.view if self.lease is not None else None
        at = self._newest.at if self._newest is not None else None
        clock = (
            self.lease.service_time() if self.lease is not None and view is not None and view.holder else self._now()
        )
        failures = (view.failure if view is not None else "", self._newest_failure)
        return StandbyStatus(
            role=self.role,
            here=self._record.holder,
            holder=view.holder if view is not None else "",
            lease_store=self._record.lease,
            epoch=view.epoch if view is not None else 0,
            lease_seconds=round(view.left_seconds, 1) if view is not None else 0.0,
            place=self._place.shown,
            shipped_at=at,
            shipment_age=round(max(0.0, clock - at), 1) if at is not None else None,
            waiting_sinks=tuple(sorted(map(str, self.gate.closed))),
            failures=tuple(one for one in failures if one),
        )


def remove_leftovers(state: Path) -> None:
    """Delete the copies that a killed process left in the folder of a state file."""
    for end in ("shipping", "shipment"):
        with suppress(FileNotFoundError):
            state.with_name(f".{state.name}.{end}").unlink()

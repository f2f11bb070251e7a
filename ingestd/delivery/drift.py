"""The drift check: compares a sink with the mirror and handles changes by other programs as configured."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
import polars as pl

from ingestd.client.response import ServiceResponse
from ingestd.client.service import ServiceClient
from ingestd.core.address import SinkAddress
from ingestd.core.guard import Guard
from ingestd.delivery.delivery_limits import MissingSink
from ingestd.delivery.lost_sink import is_lost, stopped_by
from ingestd.delivery.sink_rows import SignedRow, signed_row_of
from ingestd.mirror.drift import DriftStatus, RemoveUnexplained
from ingestd.mirror.port import LaneState
from ingestd.mirror.sqlite.delivery.delivery_store import DeliveryStore
from ingestd.mirror.sqlite.drift.drift_store import DriftStore
from ingestd.settings.drift import Mode
from ingestd.telemetry.catalogue.delivery import SinkLost
from ingestd.telemetry.catalogue.drift import (
    DriftAdopted,
    DriftCheckFailed,
    DriftFound,
    DriftRepaired,
    EntriesUnexplained,
    SinkAsDelivered,
    UnexplainedRemoved,
)
from ingestd.telemetry.event import Emit

_FRAME = {"key": str, "value": str, "data_type": str, "author": str, "changed_by": str, "changed_at": str}


_AHEAD_SECONDS = 60.0
"""The time for which the result of `read_ahead` is used; after it, another program may have changed the sink."""

LOST = "The service no longer has the sink. It is created again with all its entries."
"""The failure of a check of a lost sink."""


class DriftCheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one sink.

    ``status``: None if no entry was ever delivered, or the sink was lost. ``handled``: the number of entries repaired or adopted.
    ``lost``: the service no longer has the sink, and all its entries are pending.
    """

    sink: str
    status: DriftStatus | None
    handled: int = 0
    lost: bool = False


class _SinkReading(NamedTuple):
    """The reading of a sink for a ``check`` that has begun. ``at``: when the reading ended, by the clock of the checker."""

    check: int
    response: ServiceResponse[int]
    at: float


class DriftChecker:
    """Checks sinks. Different sinks are checked concurrently, but each sink by one check at a time. Closes its clients.

    ``missing_sink``: as in the settings of the service. ``clock``: monotonic seconds.
    """

    def __init__(
        self,
        *,
        mirror: DeliveryStore,
        drift: DriftStore,
        client: ServiceClient,
        emit: Emit,
        missing_sink: MissingSink = "create",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mirror = mirror
        self._drift = drift
        self.client = client
        self._missing_sink = missing_sink
        self._emit = emit
        self._locks: defaultdict[SinkAddress, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._readings: Counter[ServiceClient] = Counter()
        self._ahead: dict[SinkAddress, _SinkReading] = {}
        self._clock = clock

    async def use_client(self, client: ServiceClient, *, missing_sink: MissingSink) -> None:
        """Send later requests with another client. The former client is closed when no check uses it any more."""
        former, self.client = self.client, client
        self._missing_sink = missing_sink
        await self._close_if_unused(former)

    async def aclose(self) -> None:
        """Close the client in use."""
        await self.client.aclose()

    async def _close_if_unused(self, client: ServiceClient) -> None:
        if client is not self.client and not self._readings[client]:
            del self._readings[client]
            await client.aclose()

    async def check(
        self,
        address: SinkAddress,
        *,
        pipelines: Collection[str],
        mode: Mode,
        remove_added: bool = False,
        unexplained: RemoveUnexplained = "keep",
        guards: Collection[Guard] = (),
        doubt: bool = False,
    ) -> DriftCheckResult:
        """Read a sink, compare it with the mirror, and handle the differences of ``pipelines`` by ``mode``.

        ``remove_added``: a repair also removes entries that other programs have added. ``unexplained``, ``guards`` and
        ``doubt``: see `DriftStore.end_check`. The memory used does not depend on the size of the sink.
        """
        async with self._locks[address]:
            lane = await self._adopted(address)
            if lane is None:
                return DriftCheckResult(sink=str(address), status=None)
            status = await self._compare(lane, unexplained, guards, doubt=doubt)
            if status is None:
                return DriftCheckResult(sink=str(address), status=None, lost=True)
            if status.failure:
                self._emit(DriftCheckFailed(sink=str(address), sentence=status.failure))
                return DriftCheckResult(sink=str(address), status=status)
            self._report(address, status, mode)
            handled = await self._handle(lane, pipelines, mode, remove_added=remove_added) if status.found else 0
            return DriftCheckResult(sink=str(address), status=status, handled=handled)

    async def read_ahead(self, address: SinkAddress, *, is_open: Callable[[], bool]) -> None:
        """Read a sink now for its next check with ``doubt``, while its sources are read.

        ``is_open``: returns True if entries are already sent to the sink, because it was checked.
        """
        async with self._locks[address]:
            lane = await self._adopted(address)
            if lane is None or address in self._ahead or is_open():
                return
            reading = await self._read(lane)
            if reading.response.value is None:
                await self._drift.abandon_check(reading.check, reading.response.outcome.sentence)
            else:
                self._ahead[address] = reading

    async def _adopted(self, address: SinkAddress) -> LaneState | None:
        lane = next((lane for lane in await self._mirror.lanes() if lane.address == address), None)
        return lane if lane is not None and lane.sink_id and lane.adopted else None

    async def _compare(
        self, lane: LaneState, unexplained: RemoveUnexplained, guards: Collection[Guard], *, doubt: bool
    ) -> DriftStatus | None:
        """Return the result of the comparison; None: the service has lost the sink, and its entries are pending again."""
        reading = await self._take_ahead(lane, doubt=doubt) or await self._read(lane)
        response = reading.response
        if response.value is not None:
            return await self._drift.end_check(reading.check, unexplained=unexplained, guards=guards, doubt=doubt)
        failure, ended = response.outcome.sentence, False
        try:
            if response.outcome.remedy == "missing" and await self._is_lost(lane):
                if self._missing_sink == "create":
                    ended = True
                    await self._end_lost(reading.check, lane)
                    return None
                failure = stopped_by(lane.address, lane.sink_id).sentence
        finally:
            if not ended:
                await self._drift.abandon_check(reading.check, failure)
        return DriftStatus(tried_at=0, at=None, entries=0, added=0, changed=0, removed=0, failure=failure)

    async def _take_ahead(self, lane: LaneState, *, doubt: bool) -> _SinkReading | None:
        """Return the result of `read_ahead` for the sink, if this check may use it."""
        reading = self._ahead.pop(lane.address, None)
        if reading is None or (doubt and self._clock() - reading.at <= _AHEAD_SECONDS):
            return reading
        await self._drift.abandon_check(reading.check, "The sources were not read in time.")
        return None

    async def _read(self, lane: LaneState) -> _SinkReading:
        """Begin a check and read the sink. The caller has to end or abandon the check."""
        check = await self._drift.begin_check(lane.id)

        async def take(rows: list[SignedRow]) -> None:
            await self._drift.show(check, pl.DataFrame(rows, schema=_FRAME, orient="row"))

        try:
            async with self._client_in_use() as client:
                response = await client.read_sink(lane.workspace_id, lane.sink_id, take, signed_row_of)
        except BaseException:
            await self._drift.abandon_check(check, "The check was interrupted.")
            raise
        return _SinkReading(check, response, self._clock())

    async def _is_lost(self, lane: LaneState) -> bool:
        async with self._client_in_use() as client:
            return await is_lost(client, lane)

    @asynccontextmanager
    async def _client_in_use(self) -> AsyncIterator[ServiceClient]:
        client = self.client
        self._readings[client] += 1
        try:
            yield client
        finally:
            self._readings[client] -= 1
            await self._close_if_unused(client)

    async def _end_lost(self, check: int, lane: LaneState) -> None:
        """Make the entries of a lost sink pending again; the lane then creates the sink."""
        await self._mirror.forget_sink(lane.id, lost=lane.sink_id)
        await self._drift.abandon_check(check, LOST)
        self._emit(SinkLost(sink=str(lane.address), sink_id=lane.sink_id))

    async def _handle(self, lane: LaneState, pipelines: Collection[str], mode: Mode, *, remove_added: bool) -> int:
        if mode == "repair":
            handled = await self._drift.repair(lane.id, pipelines, remove_added=remove_added)
            if handled:
                self._emit(DriftRepaired(sink=str(lane.address), entries=handled))
            return handled
        if mode == "adopt":
            handled = await self._drift.adopt_drift(lane.id, pipelines)
            if handled:
                self._emit(DriftAdopted(sink=str(lane.address), entries=handled))
            return handled
        return 0

    def _report(self, address: SinkAddress, status: DriftStatus, mode: Mode) -> None:
        if status.found:
            self._emit(
                DriftFound(
                    sink=str(address),
                    added=status.added,
                    changed=status.changed,
                    removed=status.removed,
                    mode=mode,
                )
            )
        elif not (status.unexplained or status.swept):
            self._emit(SinkAsDelivered(sink=str(address), entries=status.entries))
        if status.unexplained:
            self._emit(EntriesUnexplained(sink=str(address), entries=status.unexplained))
        if status.swept:
            self._emit(UnexplainedRemoved(sink=str(address), entries=status.swept))
        if status.repaired:
            self._emit(DriftRepaired(sink=str(address), entries=status.repaired))

"""The lease of the active daemon. Sending stops after three quarters of the lease, by a monotonic clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ingestd.client.leases import WriterLease
from ingestd.core.clock import seconds_of
from ingestd.process.change_signal import ChangeSignal
from ingestd.schedule import boot_time
from ingestd.standby.lease_store import LeaseResponse, LeaseStore, LeaseUnavailable
from ingestd.telemetry import Emit
from ingestd.telemetry.catalogue.standby import LeaseConfirmed, LeaseUnconfirmed

_SENDING_SHARE = 0.75
_LOOK_SECONDS = 0.2
"""The interval at which a process checks whether another process has taken the released lease."""
_RENEWALS = 4
"""The number of renewals during one lease."""


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the lease by the last response of the store.

    ``left_seconds``: the time until the lease ends. ``failure``: why the store does not respond now; empty if it responds.
    """

    holder: str = ""
    epoch: int = 0
    left_seconds: float = 0.0
    failure: str = ""


class Lease:
    """The lease of one writer, as one process sees it.

    ``clock``: monotonic seconds, which also count while the machine is suspended. ``known_epoch``: the epoch of the last lease
    of this host. Call the methods on the event loop's thread, except `may_send`, `may_ship` and `service_time`.
    """

    def __init__(
        self,
        store: LeaseStore,
        *,
        writer: str,
        holder: str,
        seconds: int,
        known_epoch: int = 0,
        emit: Emit,
        clock: Callable[[], float] = boot_time,
    ) -> None:
        self._store = store
        self.writer = writer
        self.holder = holder
        self.seconds = seconds
        self._known_epoch = known_epoch
        self._emit = emit
        self._clock = clock
        self._view = LeaseView()
        self._ends_at = self._sends_until = -1.0
        self._service_offset = 0.0
        self._changes = ChangeSignal()
        self.epoch = 0
        """The epoch of this process's lease; 0: the process has not taken the lease, or has released it."""
        self.lost = ""
        """Why this process has lost the lease; empty if the lease is not lost."""
        self.successor = ""
        """The process that asks for the lease; empty if no process asks."""

    @property
    def view(self) -> LeaseView:
        """The state of the lease that is known now."""
        return msgspec.structs.replace(self._view, left_seconds=max(0.0, self._ends_at - self._clock()))

    def may_send(self) -> bool:
        """Return whether this process may send: it holds the lease, and more than a quarter of the lease's time is left."""
        return bool(self.epoch) and not self.lost and self._clock() < self._sends_until

    def may_ship(self) -> bool:
        """Return whether this process may ship its state: it may send, or the store of the lease does not respond.

        Without a response it may ship, because another host may need the shipment later.
        """
        return bool(self.epoch) and not self.lost and (self.may_send() or bool(self._view.failure))

    async def permit(self) -> None:
        """Wait until this process may send."""
        await self._changes.wait_until(self.may_send)

    def service_time(self) -> float:
        """Return the present time of the lease store, in seconds since the epoch, computed from the store's last response."""
        return self._clock() + self._service_offset

    async def try_to_take(self) -> bool:
        """Take the lease if no other process holds it; return whether this process has it.

        Raises:
            ConfigurationError: the service offers no leases, or refuses this lease permanently.
        """
        found = await self._ask(self._store.find(self.writer))
        if found is None or self._is_held_by_other(found.lease):
            return False
        taken = await self._ask(
            self._store.take(self.writer, holder=self.holder, seconds=self.seconds, above=self._known_epoch)
        )
        if taken is None or taken.lease is None:
            return False
        self.epoch = taken.lease.epoch
        self._changes.notify()
        return True

    def _is_held_by_other(self, lease: WriterLease | None) -> bool:
        return lease is not None and lease.milliseconds_left > 0 and lease.holder != self.holder

    async def keep(self) -> None:
        """Renew the lease until it is lost."""
        while not self.lost:
            await asyncio.sleep(self.seconds / _RENEWALS)
            renewed = await self._ask(
                self._store.renew(self.writer, holder=self.holder, seconds=self.seconds, epoch=self.epoch)
            )
            if renewed is None:
                continue
            self.lost = renewed.refusal
            if renewed.lease is not None:
                self.successor = renewed.lease.successor or ""
            self._changes.notify()

    async def wait_for_end(self) -> None:
        """Wait until the lease is lost, or another process asks for it."""
        await self._changes.wait_until(lambda: self.lost or self.successor)

    async def release(self) -> None:
        """Release the lease. For `seconds`, only a successor that asked can take it; without a successor, any process can."""
        epoch, self.epoch = self.epoch, 0
        if epoch and not self.lost:
            await self._ask(
                self._store.release(self.writer, holder=self.holder, epoch=epoch, reserved_seconds=self.seconds)
            )

    async def ask(self) -> str:
        """Ask the holder for the lease. Return an empty text, or why the holder could not be asked."""
        asked = await self._ask(self._store.ask(self.writer, holder=self.holder))
        return asked.refusal if asked is not None else self._view.failure

    async def wait_for_other_holder(self) -> None:
        """Wait until another process holds the lease."""
        while True:
            found = await self._ask(self._store.find(self.writer))
            if found is not None and self._is_held_by_other(found.lease):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _ask(self, request: Awaitable[LeaseResponse]) -> LeaseResponse | None:
        """Return the response to a request; None: the store gave no valid response in time."""
        began, longest, response, failure = self._clock(), self.seconds * _SENDING_SHARE / 2, None, ""
        try:
            # A later response couldn't extend the time in which this process may send.
            async with asyncio.timeout(longest):
                response = await request
        except LeaseUnavailable as error:
            failure = str(error)
        except TimeoutError:
            failure = f"{self._store.shown} did not respond within {longest:g} s."
        self._note(failure, began, response.lease if response is not None else None)
        return response

    def _note(self, failure: str, began: float, lease: WriterLease | None) -> None:
        if failure and not self._view.failure:
            self._emit(LeaseUnconfirmed(sentence=failure))
        elif self._view.failure and not failure:
            self._emit(LeaseConfirmed())
        self._view = msgspec.structs.replace(self._view, failure=failure)
        if lease is None:
            return
        self._view = msgspec.structs.replace(self._view, holder=lease.holder, epoch=lease.epoch)
        left = lease.milliseconds_left / 1_000
        self._ends_at = began + left
        self._service_offset = (seconds_of(lease.now) or 0.0) - began
        if lease.holder == self.holder:
            self._sends_until = began + min(left, self.seconds) * _SENDING_SHARE

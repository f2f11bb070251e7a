"""Leases in a PostgreSQL database, for a service without leases. Late requests of a former holder are then not refused."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from ingestd.client.leases import WriterLease
from ingestd.standby.database import DatabaseUnavailable, StandbyDatabase
from ingestd.standby.database_url import DatabaseSchema
from ingestd.standby.lease_store import LeaseResponse, LeaseUnavailable

_MILLISECOND = timedelta(milliseconds=1)


class DatabaseLeases:
    """Leases in a database; see `LeaseStore`. ``seconds``: the length of a lease, by the clock of the database."""

    def __init__(self, schema: DatabaseSchema, *, seconds: int) -> None:
        # A response that arrives later can't extend the time in which the process may send.
        self._database = StandbyDatabase(schema, statement_seconds=seconds / 4)
        # With one thread, the next request waits until a request that has timed out has ended.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lease")

    @property
    def shown(self) -> str:
        """The database, for messages."""
        return f"The database {self._database.schema}"

    async def find(self, writer: str) -> LeaseResponse:
        """See `LeaseStore`."""
        return LeaseResponse(lease=await self._lease("find_lease", writer=writer))

    async def take(self, writer: str, *, holder: str, seconds: int, above: int) -> LeaseResponse:
        """See `LeaseStore`."""
        taken = await self._lease("take_lease", writer=writer, holder=holder, seconds=seconds, above=above)
        return await self._or_refused(taken, writer)

    async def renew(self, writer: str, *, holder: str, seconds: int, epoch: int) -> LeaseResponse:
        """See `LeaseStore`."""
        renewed = await self._lease("renew_lease", writer=writer, holder=holder, seconds=seconds, epoch=epoch)
        return await self._or_refused(renewed, writer)

    async def release(self, writer: str, *, holder: str, epoch: int, reserved_seconds: int) -> LeaseResponse:
        """See `LeaseStore`."""
        ended = await self._lease("release_lease", writer=writer, holder=holder, epoch=epoch, seconds=reserved_seconds)
        return await self._or_refused(ended, writer)

    async def ask(self, writer: str, *, holder: str) -> LeaseResponse:
        """See `LeaseStore`."""
        return await self._or_refused(await self._lease("ask_for_lease", writer=writer, holder=holder), writer)

    def close(self) -> None:
        """Close the connection after the running request."""
        self._thread.submit(self._database.close)
        self._thread.shutdown(wait=False)

    async def _or_refused(self, lease: WriterLease | None, writer: str) -> LeaseResponse:
        if lease is not None:
            return LeaseResponse(lease=lease)
        found = await self._lease("find_lease", writer=writer)
        now = "No process holds the lease." if found is None else f"{found.holder} has it with epoch {found.epoch}."
        return LeaseResponse(refusal=f"{self.shown} refuses the lease. {now}")

    async def _lease(self, statement: str, **values: Any) -> WriterLease | None:
        """Return the lease in the only row of a statement; None if there is no row."""
        loop = asyncio.get_running_loop()
        try:
            rows = await loop.run_in_executor(self._thread, self._database.rows, statement, values)
        except DatabaseUnavailable as error:
            raise LeaseUnavailable(str(error)) from None
        return _lease_of(*rows[0]) if rows else None


def _lease_of(holder: str, epoch: int, ends_at: datetime, successor: str, now: datetime) -> WriterLease:
    return WriterLease(
        holder=holder,
        epoch=epoch,
        milliseconds_left=max(0, (ends_at - now) // _MILLISECOND),
        now=now.astimezone(UTC).isoformat(timespec="milliseconds"),
        successor=successor or None,
    )

"""The operations on the lease of a writer (service contract M14), declared like those in `ingestd.client.operations`."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ingestd.client.methods import Declaration
from ingestd.client.records import Record

_LEASE = "/v1/writer-leases/{writer}"


class WriterLease(Record, frozen=True, kw_only=True):
    """The lease of a writer. ``successor``: the process that asks for the lease. ``now``: the time of the service."""

    holder: str
    epoch: int
    milliseconds_left: int
    now: str
    successor: str | None = None


class LeaseMethods:
    """Methods for leases. 404: the lease was never taken, or the service supports no leases. 409: another process holds it."""

    @Declaration(name="writer_leases.get", method="GET", path=_LEASE)
    def find_lease(self, writer: str) -> WriterLease:
        """Return the lease."""

    @Declaration(name="writer_leases.take", method="PUT", path=_LEASE)
    def take_lease(self, writer: str, *, holder: str, seconds: int, epoch: int | UnsetType = UNSET) -> WriterLease:
        """Take the lease. With ``epoch``, extend the lease that has this epoch."""

    @Declaration(name="writer_leases.release", method="POST", path=f"{_LEASE}/release")
    def release_lease(self, writer: str, *, holder: str, epoch: int, reserved_seconds: int) -> WriterLease:
        """End the lease, and reserve it for a successor for ``reserved_seconds``."""

    @Declaration(name="writer_leases.ask", method="POST", path=f"{_LEASE}/successor")
    def ask_for_lease(self, writer: str, *, holder: str) -> WriterLease:
        """Ask the present holder for the lease."""

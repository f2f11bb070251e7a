"""The store of leases, as the rules of a lease need it. The clock of the store decides."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ingestd.client.leases import WriterLease
from ingestd.core.errors import IngestdError


class LeaseUnavailable(IngestdError):
    """The store did not respond in time, or not as itself; the sentence says why. The outcome of the request is unknown."""


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """``lease``: the present lease; None if there is none, or if the request was refused. ``refusal``: why; or empty."""

    lease: WriterLease | None = None
    refusal: str = ""


class LeaseStore(Protocol):
    """Leases of writers. Each request is one atomic change.

    Each may raise `LeaseUnavailable`.
    """

    @property
    def shown(self) -> str:
        """The store, for people, such as 'The service at https://workspace.example'."""

    async def find(self, writer: str) -> LeaseResponse:
        """Return the lease; None in it if it was never taken.

        Raises:
            ConfigurationError: the store has no leases.
        """

    async def take(self, writer: str, *, holder: str, seconds: int, above: int) -> LeaseResponse:
        """Take the lease, which gets the next epoch; refused if another process holds it.

        ``above``: an epoch that was granted before. A store that was restored from a backup may not know it.

        Raises:
            ConfigurationError: it is refused for good.
        """

    async def renew(self, writer: str, *, holder: str, seconds: int, epoch: int) -> LeaseResponse:
        """Extend the lease, also after its end; refused if another process has taken it."""

    async def release(self, writer: str, *, holder: str, epoch: int, reserved_seconds: int) -> LeaseResponse:
        """End the lease. For ``reserved_seconds`` only the successor may take it, if there is one."""

    async def ask(self, writer: str, *, holder: str) -> LeaseResponse:
        """Name the successor, which asks for the lease; refused if there is no lease."""

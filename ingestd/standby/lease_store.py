"""The interface of a store of leases. The clock of the store decides when a lease ends."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ingestd.client.leases import WriterLease
from ingestd.core.errors import IngestdError


class LeaseUnavailable(IngestdError):
    """The store gave no valid response in time; the sentence says why. The outcome of the request is unknown."""


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a request. ``lease``: None if there is none, or if it was refused. ``refusal``: the reason, or empty."""

    lease: WriterLease | None = None
    refusal: str = ""


class LeaseStore(Protocol):
    """Leases of writers. Each request is one atomic change, and may raise `LeaseUnavailable`."""

    @property
    def shown(self) -> str:
        """The store, for messages, such as 'The service at https://workspace.example'."""

    async def find(self, writer: str) -> LeaseResponse:
        """Return the lease; ``lease`` is None if it was never taken.

        Raises:
            ConfigurationError: the store has no leases.
        """

    async def take(self, writer: str, *, holder: str, seconds: int, above: int) -> LeaseResponse:
        """Take the lease, which gets the next epoch; refused if another process holds it.

        ``above``: an epoch that was granted before. A store that was restored from a backup may not know it.

        Raises:
            ConfigurationError: the lease is refused permanently.
        """

    async def renew(self, writer: str, *, holder: str, seconds: int, epoch: int) -> LeaseResponse:
        """Extend the lease, also after its end; refused if another process has taken it."""

    async def release(self, writer: str, *, holder: str, epoch: int, reserved_seconds: int) -> LeaseResponse:
        """End the lease. For ``reserved_seconds`` only the successor may take it, if there is one."""

    async def ask(self, writer: str, *, holder: str) -> LeaseResponse:
        """Record ``holder`` as the successor, which asks for the lease; refused if there is no lease."""

"""The interface of a store of leases. The clock of the store decides when a lease ends."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ingestd.client.leases import WriterLease
from ingestd.core.errors import IngestdError


class LeaseUnavailable(IngestdError):
    """The store gave no valid response in time; the sentence states why. The request may have taken effect."""


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response to a request. ``lease``: None if there is no lease, or if the request was refused for ``refusal``."""

    lease: WriterLease | None = None
    refusal: str = ""


class LeaseStore(Protocol):
    """Leases of writers. Each request is one atomic change, and may raise `LeaseUnavailable`."""

    @property
    def shown(self) -> str:
        """The store, for messages, such as 'The service at https://workspace.example'."""

    async def find(self, writer: str) -> LeaseResponse:
        """Return the lease. In the response, ``lease`` is None if the lease was never taken.

        Raises:
            ConfigurationError: the store has no leases.
        """

    async def take(self, writer: str, *, holder: str, seconds: int, above: int) -> LeaseResponse:
        """Take the lease, which gets the next epoch. The request is refused if another process holds the lease.

        ``above``: an epoch that was granted before. A store that was restored from a backup may not know this epoch.

        Raises:
            ConfigurationError: the lease is refused permanently.
        """

    async def renew(self, writer: str, *, holder: str, seconds: int, epoch: int) -> LeaseResponse:
        """Extend the lease, also after its end. The request is refused if another process has taken the lease."""

    async def release(self, writer: str, *, holder: str, epoch: int, reserved_seconds: int) -> LeaseResponse:
        """End the lease. If there is a successor, only it may take the lease for ``reserved_seconds``."""

    async def ask(self, writer: str, *, holder: str) -> LeaseResponse:
        """Record ``holder`` as the successor, which asks for the lease. The request is refused if there is no lease."""

"""The writer in the requests of a client (service contract M11). Performs no I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from ingestd.wire.writer import Writer


async def _ignore(_: Writer) -> None:
    """Do nothing about a newer rank."""


async def permit_at_once() -> None:
    """Permit a write without a condition."""


class RisingWriter:
    """A writer with an attempt that rises when a request may take effect later.

    If another process has raised the writer's rank in the service, ``on_behind`` is called with the newest writer before the
    refused write is repeated, because the caller's state is then older than the data of the service. ``permit`` is awaited
    before each write. Call all methods on the event loop's thread.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        on_behind: Callable[[Writer], Awaitable[None]] = _ignore,
        permit: Callable[[], Awaitable[None]] = permit_at_once,
    ) -> None:
        self.current = writer
        self.permit = permit
        self._on_behind = on_behind
        self._accepted: set[str] = set()

    def raise_past(self, sent: Writer) -> None:
        """Give every later request a higher rank than the request with the writer ``sent`` had."""
        if sent.attempt >= self.current.attempt:
            self.current = replace(self.current, attempt=sent.attempt + 1)

    def accept(self, workspace: str) -> None:
        """Record that the service has accepted a write to a workspace."""
        self._accepted.add(workspace)

    async def is_newer_now(self, sent: Writer, newest: Writer | None, workspace: str) -> bool:
        """Return whether a request that the service refused as late may be repeated with the current writer.

        ``newest``: the newest writer that the service knows. If another process has raised the writer, the request may be
        repeated only if this process has written nothing to the workspace yet, and the epoch is the same.
        """
        if newest is not None and newest.rank > self.current.rank:
            if workspace in self._accepted or newest.epoch > self.current.epoch:
                return False
            await self._on_behind(newest)
            self.raise_past(newest)
        return self.current.rank > sent.rank

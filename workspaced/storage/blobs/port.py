"""The interface between cloud storage and the storage of bytes: a folder, or later an object store.

Bytes are identified by their SHA-256 (64 lower-case hexadecimal digits); equal bytes are stored once. The database has the
references to them. Only `Blobs.sweep` deletes bytes, and only those without a reference.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

Referenced: TypeAlias = Callable[[Sequence[str]], Awaitable[frozenset[str]]]
"""Return those of the digests that committed rows refer to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Bytes that were received and survive a loss of power, but are not published at their address yet."""

    sha256: str
    size: int
    path: Path


class Blobs(Protocol):
    """The storage as one process uses it; several processes may use it at once."""

    def receive(self, parts: AsyncIterator[bytes]) -> AbstractAsyncContextManager[Incoming]:
        """Receive bytes. Bytes that were not `kept` are deleted at the end of the block.

        Raises:
            UnavailableProblem: the disk is full or fails; nothing remains.
        """

    def kept(self, *incoming: Incoming) -> AbstractAsyncContextManager[None]:
        """Publish the bytes at their addresses, durably, and protect them from sweeps during the block.

        The block commits the reference to them; if it does not, a later sweep deletes them.

        Raises:
            UnavailableProblem: the disk is full or fails.
        """

    def read(self, sha256: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """Yield ``length`` bytes from ``start`` on, in pieces.

        Raises:
            UnavailableProblem: the bytes are missing or unreadable, although the database refers to them.
        """

    def as_file(self, sha256: str) -> Path:
        """Return a read-only file with these bytes."""

    def scratch(self) -> AbstractAsyncContextManager[Path]:
        """Create an empty folder that exists during the block; the sweep deletes those of killed processes."""

    async def sweep(self, referenced: Referenced) -> int:
        """Delete bytes without a reference, and what killed processes left; return how many items were deleted."""

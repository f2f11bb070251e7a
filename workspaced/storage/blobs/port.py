"""The seam between cloud storage and what holds bytes: a folder, or later an object store.

Bytes are known by their SHA-256 (64 lower-case hexadecimal digits) and by nothing else; equal bytes are kept once. Whoever
refers to them says so in the database. What nothing refers to is dropped by `Blobs.sweep`, and only there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

Referenced: TypeAlias = Callable[[Sequence[str]], Awaitable[frozenset[str]]]
"""Of these digests those that somebody refers to, by what is committed now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Bytes that have been taken in and survive loss of power, but are at no address yet."""

    sha256: str
    size: int
    path: Path


class Blobs(Protocol):
    """One process's use of the place; several processes may use it at once."""

    def receive(self, parts: AsyncIterator[bytes]) -> AbstractAsyncContextManager[Incoming]:
        """Take bytes in. What has not been `kept` when the block ends is gone.

        Raises:
            Unavailable: the disk is full or fails; nothing is left behind.
        """

    def kept(self, *incoming: Incoming) -> AbstractAsyncContextManager[None]:
        """The bytes are at their addresses, durably, and no sweep touches them while the block lasts.

        The block commits the reference to them; if it does not, a later sweep drops them.

        Raises:
            Unavailable: the disk is full or fails.
        """

    def read(self, sha256: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """``length`` bytes from ``start`` on, in pieces.

        Raises:
            Unavailable: the bytes are not there or can't be read, which the database says they can.
        """

    def as_file(self, sha256: str) -> Path:
        """A file with these bytes, to be read only."""

    def scratch(self) -> AbstractAsyncContextManager[Path]:
        """An empty folder for the time of the block; what a killed process left is swept."""

    async def sweep(self, referenced: Referenced) -> int:
        """Drop what nothing refers to, and what killed processes had not finished; how many things they were."""

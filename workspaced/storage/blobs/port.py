"""A store of bytes under names: the interface between `workspaced.storage.blobs.blobs` and a folder or a bucket.

A name is ``ab/cdef….id``: the SHA-256 of the bytes, and 16 hexadecimal digits that make it unique. The bytes of a name never
change.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

from workspaced.core.problems import UnavailableProblem

IDENTITY: Final = "identity"
"""The name of the text that identifies a store. No bytes have this name."""


class BlobStoreRefused(UnavailableProblem):
    """The store does not exist, or may not be used. At a start this is fatal; a running service waits until it is corrected."""


class BlobStore(ABC):
    """A folder or a bucket, as one process uses it. Several may use it at once.

    Each method raises UnavailableProblem if the store fails, and ends within the time limit of its kind.
    """

    @property
    @abstractmethod
    def shown(self) -> str:
        """The address, for people; without credentials."""

    @abstractmethod
    async def prepare(self, source: Path) -> None:
        """Do the part of `put` that needs no name, so that a name can be announced meanwhile."""

    @abstractmethod
    async def put(self, name: str, source: Path) -> None:
        """Store the bytes of a file that was prepared, and may be moved. They are durable and complete when this returns.

        If the store already has bytes of this name, they are equal, or a killed process left them. They are replaced.
        """

    @abstractmethod
    async def holds(self, name: str, size: int) -> bool:
        """Return whether the ``size`` bytes of a name are completely there."""

    @abstractmethod
    def read(self, name: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """Yield ``length`` bytes from ``start`` on, in pieces of a megabyte at most.

        Raises:
            FileNotFoundError: there are no bytes of this name.
        """

    @abstractmethod
    def local_path(self, name: str) -> Path | None:
        """Return the file with these bytes, if the store has files."""

    @abstractmethod
    async def delete(self, names: Sequence[str]) -> None:
        """Delete the bytes of these names, if they exist, also incomplete ones."""

    @abstractmethod
    async def identity(self) -> str | None:
        """Return the text that `set_identity` wrote; None if there is none."""

    @abstractmethod
    async def set_identity(self, text: str) -> None:
        """Write the text that identifies the store, durably."""


def new_name(sha256: str) -> str:
    """Return a name for bytes with this SHA-256 (64 hexadecimal digits) that was never used before."""
    return f"{sha256[:2]}/{sha256[2:]}.{secrets.token_hex(8)}"

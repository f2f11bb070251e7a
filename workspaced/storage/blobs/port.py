"""A store of named bytes: the interface between `workspaced.storage.blobs.blobs` and a folder or a bucket.

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
"""The name of the text that identifies a store. Stored bytes never have this name."""


class BlobStoreRefused(UnavailableProblem):
    """The store does not exist, or may not be used. At a start this is fatal; a running service waits for a correction."""


class BlobStore(ABC):
    """A folder or a bucket, as one process uses it. Several processes may use the same store at once.

    Each method raises UnavailableProblem if the store fails. Each request to a bucket has a time limit.
    """

    @property
    @abstractmethod
    def shown(self) -> str:
        """The address of the store for messages, without credentials."""

    @abstractmethod
    async def prepare(self, source: Path) -> None:
        """Do the part of `put` that needs no name, so that the caller can announce the name at the same time."""

    @abstractmethod
    async def put(self, name: str, source: Path) -> None:
        """Store the bytes of a prepared file, which may be moved. When this returns, the bytes are durable and complete.

        Existing bytes of this name are replaced. They are equal, or incomplete because a process was killed.
        """

    @abstractmethod
    async def holds(self, name: str, size: int) -> bool:
        """Return whether the store has all ``size`` bytes of a name."""

    @abstractmethod
    def read(self, name: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """Yield ``length`` bytes from ``start`` on, in pieces of a megabyte at most.

        Raises:
            FileNotFoundError: there are no bytes of this name.
        """

    @abstractmethod
    def local_path(self, name: str) -> Path | None:
        """Return the path of the file with these bytes; None if the store has no files."""

    @abstractmethod
    async def delete(self, names: Sequence[str]) -> None:
        """Delete the bytes of these names, also incomplete bytes. A name without bytes is no error."""

    @abstractmethod
    async def identity(self) -> str | None:
        """Return the text that `set_identity` wrote; None if there is none."""

    @abstractmethod
    async def set_identity(self, text: str) -> None:
        """Write the text that identifies the store, durably."""


def new_name(sha256: str) -> str:
    """Return a new, unique name for bytes with this SHA-256 (64 hexadecimal digits)."""
    return f"{sha256[:2]}/{sha256[2:]}.{secrets.token_hex(8)}"

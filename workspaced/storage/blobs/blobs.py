"""The bytes of files, identified by their SHA-256 (64 lower-case hexadecimal digits); equal bytes are stored once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.blobs import rows
from workspaced.storage.blobs.file_threads import disk_problems, open_file
from workspaced.storage.blobs.identity import BlobIdentity
from workspaced.storage.blobs.port import BlobStore
from workspaced.storage.blobs.received_bytes import Incoming, IncomingFolder
from workspaced.storage.port import Transaction
from workspaced.storage.store import Store

GRACE_MS = 12 * 3_600_000
"""How long unused bytes are kept, in milliseconds."""


class Blobs:
    """The stored bytes of files, as one process uses them. Several processes on several hosts may use them at once."""

    def __init__(
        self, blob_store: BlobStore, store: Store, incoming: IncomingFolder, *, now: Callable[[], int]
    ) -> None:
        """``now`` returns milliseconds since 1970; the clocks of hosts must agree within hours."""
        self.blob_store = blob_store
        self.identity = BlobIdentity(blob_store, store, now=now)
        self._store = store
        self._incoming = incoming
        self._now = now

    def receive(self, parts: AsyncIterator[bytes]) -> AbstractAsyncContextManager[Incoming]:
        """Receive bytes on this host's disk; see `IncomingFolder.receive`."""
        return self._incoming.receive(parts)

    def scratch(self) -> AbstractAsyncContextManager[Path]:
        """Create an empty folder that exists until the context ends; see `IncomingFolder.scratch`."""
        return self._incoming.scratch()

    async def keep(self, *received: Incoming) -> Mapping[str, str]:
        """Store bytes, unless equal bytes are already stored. Return the names of the bytes by SHA-256, for `use`.

        If no `use` follows, a later sweep deletes the bytes.

        Raises:
            UnavailableProblem: the bytes can't be stored now.
        """
        kept: dict[str, str] = {}
        for one in received:
            if one.sha256 not in kept:
                name, _ = await asyncio.gather(self._announce(one), self.blob_store.prepare(one.path))
                kept[one.sha256] = name
                if not await self.blob_store.holds(name, one.size):
                    await self.blob_store.put(name, one.path)
        return kept

    async def _announce(self, one: Incoming) -> str:
        row = await self._store.read_brief(lambda reader: rows.find(reader, one.sha256))
        if row is not None and row.unused_since is None:
            return row.name  # if a sweep deletes the row meanwhile, `use` raises
        return await self._store.write(lambda tx: rows.announce(tx, one.sha256, size=one.size, now=self._now()))

    def use(self, tx: Transaction, kept: Mapping[str, str]) -> None:
        """Mark the bytes as used, in the transaction that stores a reference to them.

        Raises:
            UnavailableProblem: the bytes were dropped, or the database now names another store.
        """
        self.identity.require_current(tx)
        rows.use(tx, kept)

    async def read(self, sha256: str, *, start: int, length: int) -> AsyncGenerator[bytes, None]:
        """Yield ``length`` bytes from ``start`` on, in pieces.

        If all bytes are read, their SHA-256 is compared before the last piece is yielded.

        Raises:
            UnavailableProblem: the bytes are missing, damaged or can't be read, although the database refers to them.
        """
        row = await self._store.read_brief(lambda reader: rows.find(reader, sha256))
        if row is None:
            raise _missing()
        parts = self.blob_store.read(row.name, start=start, length=length)
        try:
            async with aclosing(parts if length < row.size else verified(parts, sha256)) as found:
                async for part in found:
                    yield part
        except FileNotFoundError as error:
            raise _missing() from error

    async def as_file(self, sha256: str, *, size: int, folder: Path) -> Path:
        """Return the path of a file with these bytes. The caller must not change the file.

        If the store is a bucket, the file is created in ``folder``.

        Raises:
            UnavailableProblem: see `read`.
        """
        row = await self._store.read_brief(lambda reader: rows.find(reader, sha256))
        if row is not None and (path := self.blob_store.local_path(row.name)) is not None:
            return path
        made = folder / "bytes"
        with disk_problems(), await open_file(made, "wb") as file:
            async with aclosing(self.read(sha256, start=0, length=size)) as parts:
                async for part in parts:
                    await asyncio.to_thread(file.write, part)
        return made

    async def drop_abandoned(self) -> int:
        """Delete files and folders that killed processes of this host left; return their number."""
        return await self._incoming.drop_abandoned()


async def verified(parts: AsyncGenerator[bytes, None], sha256: str) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of ``parts``, but the last piece only if all bytes together have this SHA-256.

    Raises:
        UnavailableProblem: the SHA-256 of the bytes differs.
    """
    digest = hashlib.sha256()
    last = b""
    async with aclosing(parts):
        async for part in parts:
            await asyncio.to_thread(digest.update, part)
            if last:
                yield last
            last = part
    if digest.hexdigest() != sha256:
        detail = "The stored bytes of this file are damaged: they have another SHA-256 than when they were stored."
        raise UnavailableProblem("bytes_damaged", detail, retry_seconds=60)
    yield last


def _missing() -> UnavailableProblem:
    return UnavailableProblem("bytes_missing", "The stored bytes of this file are missing.", retry_seconds=60)

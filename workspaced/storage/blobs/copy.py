"""Copy the bytes of all files to another store, and make the target the store of the database.

A copy can be interrupted at any point and run again: it copies bytes that the target does not have. Uploads continue until the
switch.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Final, TypeVar

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.address import Address
from workspaced.storage.blobs import rows
from workspaced.storage.blobs.blobs import verified
from workspaced.storage.blobs.identity import CONSTANT, MOVING, current_of
from workspaced.storage.blobs.port import IDENTITY, BlobStore
from workspaced.storage.blobs.received_bytes import IncomingFolder
from workspaced.storage.blobs.rows import StoredBlob
from workspaced.storage.constants import find_constant, replace_constant
from workspaced.storage.factory import transact
from workspaced.storage.port import StorageUnusable, Transaction

T = TypeVar("T")

_ROWS: Final = 500
_AT_ONCE: Final = 8
_MISSING_SHOWN: Final = 5


class BlobCopy:
    """A copy from one store to another. If the target is a folder, ``incoming`` is on the same file system."""

    def __init__(self, address: Address, source: BlobStore, target: BlobStore, incoming: IncomingFolder) -> None:
        self._address = address
        self._source = source
        self._target = target
        self._incoming = incoming
        self._missing: list[str] = []

    async def run(self, report: Callable[[int, int], None]) -> tuple[int, int]:
        """Copy the bytes of all rows that the target does not have. Return the numbers of copied and of present rows.

        ``report`` gets both numbers after each page of rows.

        Raises:
            StorageUnusable: the target belongs to another database; or bytes in use are missing or damaged, after all other
                bytes were copied.
            UnavailableProblem: a store or the database fails.
        """
        await self._require_own_target()
        self._missing.clear()
        counts: Counter[str] = Counter()
        page = await self._page("")
        while page:
            each = iter(page)
            while part := list(islice(each, _AT_ONCE)):
                counts.update(await self._copy_all(part))
            report(counts["copied"], counts["present"])
            page = await self._page(page[-1].sha256)
        if self._missing:
            shown = ", ".join(sorted(self._missing)[:_MISSING_SHOWN])
            raise StorageUnusable(
                f"{self._source.shown} lacks {len(self._missing)} of the bytes that records refer to, or has damaged ones "
                f"(SHA-256 {shown}). Restore them there from a backup, and run the same command again."
            )
        return counts["copied"], counts["present"]

    async def switch(self, report: Callable[[int, int], None]) -> None:
        """Make the target the store of the database. Call `run` before.

        After the first transaction, no host can record new bytes, and none can start. So the `run` below copies the last bytes.
        """
        moving = await self._transact(_begin_move)
        await self.run(report)
        identities = moving.removeprefix(MOVING)
        await self._target.set_identity(current_of(identities))
        await self._transact(lambda tx: replace_constant(tx, CONSTANT, moving, identities))

    async def _require_own_target(self) -> None:
        found = await self._target.identity()
        recorded = await self._transact(lambda tx: find_constant(tx, CONSTANT)) or ""
        if found is not None and found not in recorded.split():
            raise StorageUnusable(
                f"{self._target.shown} has the files of another database: its {IDENTITY} is {found}. Give an empty folder or "
                "prefix."
            )

    async def _page(self, after: str) -> list[StoredBlob]:
        return await self._transact(lambda tx: rows.page(tx, after=after, most=_ROWS))

    async def _copy_all(self, part: list[StoredBlob]) -> list[str]:
        """Copy the bytes of several rows at once. All copies run to their end, even if some fail."""
        ended = await asyncio.gather(*map(self._copy, part), return_exceptions=True)
        for one in ended:
            if isinstance(one, BaseException):
                raise one
        return [str(one) for one in ended]

    async def _copy(self, row: StoredBlob) -> str:
        """Copy the bytes of a row. Return ``copied``, ``present`` or ``missing``."""
        if await self._target.holds(row.name, row.size):
            return "present"
        try:
            parts = self._source.read(row.name, start=0, length=row.size)
            async with self._incoming.receive(verified(parts, row.sha256)) as received:
                await self._target.prepare(received.path)
                await self._target.put(row.name, received.path)
        except FileNotFoundError:
            return self._note_missing(row)
        except UnavailableProblem as problem:
            if problem.code != "bytes_damaged":
                raise
            return self._note_missing(row)
        return "copied"

    def _note_missing(self, row: StoredBlob) -> str:
        """Record missing bytes if they are in use. Unused bytes may be missing because an upload was interrupted."""
        if row.unused_since is None:
            self._missing.append(row.sha256)
        return "missing"

    async def _transact(self, work: Callable[[Transaction], T]) -> T:
        return await asyncio.to_thread(transact, self._address, work)


def _begin_move(tx: Transaction) -> str:
    """Record the last phase of a move; return the new value of the constant, or the value of an interrupted move.

    On PostgreSQL, this function waits for transactions that are recording uploads.
    """
    recorded = find_constant(tx, CONSTANT)
    if recorded is not None and recorded.startswith(MOVING):
        return recorded
    moving = f"{MOVING}{uuid.uuid4()} {recorded or ''}".rstrip()
    replace_constant(tx, CONSTANT, recorded, moving)
    return moving

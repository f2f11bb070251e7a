"""The identity of a store of bytes: a random text by which the database recognizes the store.

The text is in the store and in the database. So a host with another folder or bucket can't start. A host that runs while the
files move to another store can't record new bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

from workspaced.core.problems import UnavailableProblem
from workspaced.storage.blobs.port import IDENTITY, BlobStore, BlobStoreRefused
from workspaced.storage.constants import find_constant, replace_constant
from workspaced.storage.maintenance_jobs import JobLeases
from workspaced.storage.port import ReadTransaction, StorageUnusable
from workspaced.storage.store import Store

CONSTANT: Final = "blob_store"
"""The name of the constant. The value is the identity of the present store, followed by the identities of former stores, to
which files may move back."""
MOVING: Final = "moving "
"""The beginning of the constant's value in the last phase of `workspaced blobs copy`. The identities follow."""
_CLAIMED: Final = "claimed "


class BlobIdentity:
    """The store of a process, compared with the store that the database names."""

    def __init__(self, blob_store: BlobStore, store: Store, *, now: Callable[[], int]) -> None:
        self._blob_store = blob_store
        self._store = store
        self._leases = JobLeases(store, now=now)
        self._recorded = ""

    async def check(self) -> None:
        """Compare the store with the database. The first start with a database writes the identity to both.

        Raises:
            StorageUnusable: the store belongs to another database, this database has another store, or access is refused.
            UnavailableProblem: the store or the database can't be reached, or files are being moved.
        """
        try:
            self._recorded = await self._common_constant()
        except BlobStoreRefused as problem:
            advice = "Correct --blobs, the variables WORKSPACED_BLOBS_…, or the rights of the access key."
            raise StorageUnusable(f"{self._blob_store.shown}: {problem.detail} {advice}") from problem

    async def _common_constant(self) -> str:
        recorded = await self._store.read(lambda reader: find_constant(reader, CONSTANT))
        if recorded is None or recorded.startswith(_CLAIMED):
            async with self._leases.held("claim_of_blob_store") as is_held:
                if not is_held:
                    raise UnavailableProblem("starting", "Another host starts for the first time with this database.")
                recorded = await self._claim()
        if recorded.startswith(MOVING):
            raise UnavailableProblem("blobs_moving", _MOVING_SENTENCE, retry_seconds=60)
        found = await self._blob_store.identity()
        if found != current_of(recorded):
            raise StorageUnusable(self._differs(found, recorded))
        return recorded

    def require_current(self, reader: ReadTransaction) -> None:
        """Check that the database still names the store that `check` found.

        In a writing transaction, the name can't change before the commit.

        Raises:
            UnavailableProblem: the files were moved to another store meanwhile.
        """
        if find_constant(reader, CONSTANT) != self._recorded:
            detail = "The files were moved to another store: this host must be started with it."
            raise UnavailableProblem("blobs_moved", detail, retry_seconds=60)

    async def _claim(self) -> str:
        """Write a new identity to the store and the database, and return it.

        The database gets the identity first, so that a start after a crash recognizes it in the store. If the store has no
        identity then, a new identity is made, because the crashed host may have used a different store.
        """
        found = await self._blob_store.identity()
        recorded = await self._store.read(lambda reader: find_constant(reader, CONSTANT))
        if recorded is not None and not recorded.startswith(_CLAIMED):
            return recorded
        if found is None:
            identity = str(uuid.uuid4())
            await self._store.write(lambda tx: replace_constant(tx, CONSTANT, recorded, f"{_CLAIMED}{identity}"))
            await self._blob_store.set_identity(identity)
            recorded = f"{_CLAIMED}{identity}"
        elif recorded != f"{_CLAIMED}{found}":
            raise StorageUnusable(
                f"{self._blob_store.shown} has the files of another database: its {IDENTITY} is {found}, and this database is "
                "new. Give an empty folder or prefix, or the database that belongs to these files."
            )
        identity = recorded.removeprefix(_CLAIMED)
        await self._store.write(lambda tx: replace_constant(tx, CONSTANT, f"{_CLAIMED}{identity}", identity))
        return identity

    def _differs(self, found: str | None, recorded: str) -> str:
        has = f"has the {IDENTITY} {found}" if found is not None else f"has no {IDENTITY}"
        return (
            f"{self._blob_store.shown} is not the store of this database's files: it {has}, and the database has "
            f"{current_of(recorded)}. "
            "Start this host with the store of the other hosts (--blobs, or the folder of --data). `workspaced blobs copy` "
            "moves the files to another store."
        )


def current_of(recorded: str) -> str:
    """Return the identity of the present store, which is the first identity in the constant."""
    return recorded.partition(" ")[0]


_MOVING_SENTENCE = (
    "The files are being moved to another store. If `workspaced blobs copy` was interrupted, run it again with the "
    "same words."
)

"""Make the whole backup: it exists completely or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from workspaced.storage.address import Address
from workspaced.storage.backup.blobs import copied_bytes
from workspaced.storage.backup.records import copy_records
from workspaced.storage.disk import flush
from workspaced.storage.port import StorageUnusable


def back_up(address: Address, blobs: Path, folder: Path) -> int:
    """Create ``folder`` with the records and a copy of every file in ``blobs``; return the number of copied files.

    All bytes that the records name are in it: bytes never change, and none is deleted meanwhile.

    Raises:
        StorageUnusable: it can't be made; the message has the reason. Nothing remains of it.
    """
    if folder.exists():
        raise StorageUnusable(
            f"{folder} exists already. Give a folder that does not exist: a backup never changes one."
        )
    unfinished = folder.with_name(f".{folder.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(mode=0o700, parents=True)
        with copied_bytes(blobs, unfinished / "blobs") as copy:
            copy_records(address, unfinished)
            count = copy()
        unfinished.rename(folder)
        flush(folder.parent)
    except OSError as error:
        where = error.filename or folder
        raise StorageUnusable(f"The backup can't be made: {where}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return count

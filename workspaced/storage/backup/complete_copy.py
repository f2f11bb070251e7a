"""The whole backup: it is there complete, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from workspaced.storage.address import Address
from workspaced.storage.backup.blobs import copied_bytes
from workspaced.storage.backup.records import copy_records
from workspaced.storage.port import StorageUnusable


def back_up(address: Address, blobs: Path, folder: Path) -> int:
    """Make ``folder``, with the records and a copy of every file in ``blobs``; how many files of bytes it has.

    What the records name is in it: bytes never change, and none is dropped meanwhile.

    Raises:
        StorageUnusable: it can't be made; the sentence says why. Nothing is left of it.
    """
    if folder.exists():
        raise StorageUnusable(f"{folder} is there already. Give a folder that is not: a backup never changes one.")
    unfinished = folder.with_name(f".{folder.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(mode=0o700, parents=True)
        with copied_bytes(blobs, unfinished / "blobs") as copy:
            copy_records(address, unfinished)
            count = copy()
        unfinished.rename(folder)
        descriptor = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        where = error.filename or folder
        raise StorageUnusable(f"The backup can't be made: {where}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return count

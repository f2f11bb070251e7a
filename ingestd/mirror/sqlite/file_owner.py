"""The owner of files that root writes for the account of the daemon."""

from __future__ import annotations

import os
from pathlib import Path


def owner_like(path: Path) -> os.stat_result:
    """Return the status of the file, or of the closest existing folder above it."""
    return next(found for found in (path, *path.parents) if found.exists()).stat()


def give(path: Path, owner: os.stat_result) -> None:
    """Give a file or folder that this process created to the owner and the group, if this process may do that.

    Not for a file that existed before: the account may have made it a link to a file of root.
    """
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def make_folder(folder: Path, owner: os.stat_result, *, mode: int = 0o777) -> None:
    """Create the folder and its missing parents for the owner; existing ones stay."""
    if folder.is_dir():
        return
    make_folder(folder.parent, owner)
    folder.mkdir(mode=mode)
    give(folder, owner)

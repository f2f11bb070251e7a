"""Opens and creates the state file and the files in its folder, also when root does this for the account of the daemon."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_state_file(path: Path) -> int:
    """Open the state file or a file next to it for reading and writing, create a missing file, and return the descriptor.

    The account of the daemon owns the folder, and commands of root open the files, too. So no link is followed.

    Raises:
        OSError: the file can't be opened or created, is a link (ELOOP or EMLINK), or is no regular file (EINVAL).
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path, flags, 0o600)
    facts = os.fstat(handle)
    number = 0 if stat.S_ISREG(facts.st_mode) else errno.EINVAL
    if facts.st_nlink > 1:
        number = errno.EMLINK
    if number:
        os.close(handle)
        raise OSError(number, os.strerror(number), str(path))
    return handle


def owner_like(path: Path) -> os.stat_result:
    """Return the status of the file, or of the closest existing folder above it."""
    return next(found for found in (path, *path.parents) if found.exists()).stat()


def give(path: Path, owner: os.stat_result) -> None:
    """Give a file or folder that this process has created to an owner and their group, if this process is root.

    Do not call it for a file that existed before: its account may have replaced it by a link to a file of root.
    """
    if os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def make_folder(folder: Path, owner: os.stat_result, *, mode: int = 0o777) -> None:
    """Create the folder and its missing parents for the owner; existing folders are not changed."""
    if folder.is_dir():
        return
    make_folder(folder.parent, owner)
    folder.mkdir(mode=mode)
    give(folder, owner)

"""Durable writes to the disk, and folders and files for one account."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from workspaced.core.problems import UnavailableProblem


def try_disk(folder: Path) -> None:
    """Write a file and flush it to the disk. Raises UnavailableProblem: the folder is not writable."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ready-") as probe:
            probe.write(b"ready")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise UnavailableProblem("disk_not_writable", f"The data folder is not writable ({error.strerror}).") from error


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents for this account only. `Path.mkdir` gives the parents the modes of the umask.

    Raises:
        OSError: the folder can't be created.
    """
    if folder.is_dir():
        return
    if folder.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Create a file for this account only. An existing file gets the same mode, without being opened.

    Raises:
        OSError: the file can't be created, or belongs to another account.
    """
    path.touch(mode=0o600)
    path.chmod(0o600)


def flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk. Raises OSError: the flush failed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

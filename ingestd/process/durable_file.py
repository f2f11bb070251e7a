"""Writes small private files so that a crash leaves no incomplete file."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress


def write_durably(
    folder: int, name: str, content: bytes, *, replace: bool = True, owner: os.stat_result | None = None
) -> bool:
    """Write a file (mode 0600) in an open folder. After a crash, the file has the old or the new content.

    ``replace``: if False, an existing file is kept, and the result is False. ``owner``: the owner of the new file, if this
    process is root.

    Raises:
        OSError: the file can't be written.
    """
    part = f".{name}.{secrets.token_hex(8)}.part"
    is_written = True
    try:
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if owner is not None:
                give(handle, owner)
            os.fsync(handle)
        if replace:
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            try:
                os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:  # another process was first
                is_written = False
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
    os.fsync(folder)
    return is_written


def give(descriptor: int, owner: os.stat_result) -> None:
    """If this process is root, set the owner and group of an open file or folder that it created."""
    if os.geteuid() == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)

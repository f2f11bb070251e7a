"""Small private files that are complete after a crash."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress


def write_durably(
    folder: int, name: str, content: bytes, *, replace: bool = True, owner: os.stat_result | None = None
) -> bool:
    """Write a file (mode 0600) in an open folder. After a crash it has the former content or the new one.

    ``replace``: False leaves a file that exists as it is, and the result is then False. ``owner``: the owner of the new file,
    if this process is root.

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
    """Give an open file or folder that this process created to an owner and its group, if this process is root."""
    if os.geteuid() == 0:
        os.fchown(descriptor, owner.st_uid, owner.st_gid)

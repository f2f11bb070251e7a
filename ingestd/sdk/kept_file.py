"""A small private file of a connector that must not be lost, such as a client id or a certificate."""

from __future__ import annotations

import os
import secrets
from collections.abc import MutableMapping
from contextlib import ExitStack, suppress
from pathlib import Path

MAX_BYTES = 1024 * 1024
"""The largest content of a kept file."""


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class KeptFile:
    """One file of a connector. Backups contain it, and `ingestd restore` writes it again.

    ``folder``: the private folder of the pipeline; None: there is none. ``unsaved``: contents that stay in memory by name, in a
    process that only looks, such as `ingestd check`; None: `write` writes the file.
    """

    def __init__(self, folder: Path | None, name: str, *, unsaved: MutableMapping[str, bytes] | None) -> None:
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise ValueError(
                f"{name!r} is not the name of a kept file: it must be one part of a path, without a first dot."
            )
        self._folder = folder
        self._name = name
        self._unsaved = unsaved

    def read(self) -> bytes | None:
        """Return the content; None: nothing was written yet.

        Raises:
            OSError: the file can't be read, or is larger than `MAX_BYTES`.
        """
        if self._unsaved is not None and self._name in self._unsaved:
            return self._unsaved[self._name]
        if self._folder is None:
            return None
        path = self._folder / self._name
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            return None
        if len(content) > MAX_BYTES:
            raise OSError(f"{path} has more than {MAX_BYTES} bytes, so this program did not write it.")
        return content

    def write(self, content: bytes) -> None:
        """Replace the content. After a crash the file has the former or the new one. Only its owner may read it (mode 0600).

        Raises:
            ValueError: ``content`` is larger than `MAX_BYTES`.
            OSError: the file can't be written.
        """
        if len(content) > MAX_BYTES:
            raise ValueError(f"A kept file has at most {MAX_BYTES} bytes; {self._name} would have {len(content)}.")
        if self._unsaved is not None or self._folder is None:
            if self._unsaved is not None:
                self._unsaved[self._name] = content
            return
        write_kept(self._folder, self._name, content)

    def write_first(self, content: bytes) -> bytes:
        """Store the content if there is none, and return what is stored.

        Also a process that only looks, such as `ingestd check`, stores it: for what the other side must know before the source is
        used first, such as a certificate. The owner of the folder of the state file owns it.

        Raises:
            OSError: the file can't be written, or is larger than `MAX_BYTES`.
        """
        if self._folder is not None and self.read() is None:
            write_first(self._folder, self._name, content)
        stored = self.read()
        return content if stored is None else stored


def write_first(folder: Path, name: str, content: bytes) -> None:
    """Write a kept file durably, unless there is one.

    It follows no link below the folder of the state file, because root may call it in folders of the daemon's account.

    Raises:
        OSError: the file can't be written.
    """
    _make_parents(folder.parent.parent)
    with ExitStack() as stack:
        parent = os.open(folder.parent.parent, _FOLDER)
        stack.callback(os.close, parent)
        owner = os.fstat(parent)
        for part in (folder.parent.name, folder.name):
            is_new = _make_folder(part, parent)
            parent = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
            stack.callback(os.close, parent)
            if is_new and os.geteuid() == 0:
                os.fchown(parent, owner.st_uid, owner.st_gid)
        hidden = f".{name}.{secrets.token_hex(8)}.part"
        handle = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=parent)
        stack.callback(os.unlink, hidden, dir_fd=parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if os.geteuid() == 0:
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        with suppress(FileExistsError):  # another process was first
            os.link(hidden, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        os.fsync(parent)


def _make_parents(folder: Path) -> None:
    """Create a folder and those above it, each for the owner of the one above."""
    if folder.is_dir():
        return
    _make_parents(folder.parent)
    folder.mkdir()
    if os.geteuid() == 0:
        owner = folder.parent.stat()
        os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _make_folder(name: str, parent: int) -> bool:
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        return False
    return True


def write_kept(folder: Path, name: str, content: bytes) -> None:
    """Write a kept file durably.

    Raises:
        OSError: the file can't be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f".{name}.part"
    with suppress(FileNotFoundError):  # a crash left it
        part.unlink()
    try:
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

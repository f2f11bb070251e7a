"""A small private file of a connector that must not be lost, such as a client id or a certificate."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ingestd.process.durable_file import give, write_durably

MAX_BYTES = 1024 * 1024
"""The maximum size of a kept file, in bytes."""


class KeptFile:
    """One file of a connector. Backups contain it, and `ingestd restore` writes it again.

    ``folder``: the private folder of the pipeline; None: the pipeline has no folder. ``unsaved``: contents in memory by
    file name, for a process that must not write, such as `ingestd check`; None: `write` writes the file.
    """

    def __init__(self, folder: Path | None, name: str, *, unsaved: MutableMapping[str, bytes] | None) -> None:
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise ValueError(
                f"{name!r} is not the name of a kept file: it must be one path component that begins with no dot."
            )
        self._folder = folder
        self._name = name
        self._unsaved = unsaved

    def read(self) -> bytes | None:
        """Return the content; None if nothing was written yet.

        Raises:
            OSError: the file can't be read, or is larger than `MAX_BYTES`.
        """
        if self._unsaved is not None and self._name in self._unsaved:
            return self._unsaved[self._name]
        if self._folder is None:
            return None
        path = self._folder / self._name
        try:
            with private_folder(self._folder) as folder:
                content = read_kept(folder, self._name)
        except FileNotFoundError:
            return None
        if len(content) > MAX_BYTES:
            raise OSError(f"{path} has more than {MAX_BYTES} bytes, so this program did not write it.")
        return content

    def write(self, content: bytes) -> None:
        """Replace the content. After a crash, the file has the old or the new content. Only its owner may read it (mode 0600).

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
        """Store ``content`` if the file does not exist, and return the stored content.

        Even `ingestd check` writes the file. Use this method for content that another system needs before the source is first
        used, such as a certificate.

        Raises:
            OSError: the file can't be written, or is larger than `MAX_BYTES`.
        """
        if self._folder is not None and self.read() is None:
            write_kept(self._folder, self._name, content, replace=False)
        stored = self.read()
        return content if stored is None else stored


@contextmanager
def private_folder(folder: Path, *, create: bool = False) -> Iterator[int]:
    """Open a folder of a pipeline, such as ``i.db.connectors/NAME``, and yield its descriptor.

    Neither the folder nor its parent may be a link. ``create``: create missing folders, these two with mode 0700.

    Raises:
        OSError: a folder is missing, is a link or can't be opened.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if create:
        _make_folders(folder.parent.parent)
    with ExitStack() as opened:
        descriptor = os.open(folder.parent.parent, flags)
        opened.callback(os.close, descriptor)
        owner = os.fstat(descriptor)
        for name in (folder.parent.name, folder.name):
            made = False
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=descriptor)
                    made = True
            descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            opened.callback(os.close, descriptor)
            if made:
                give(descriptor, owner)
        yield descriptor


def read_kept(folder: int, name: str) -> bytes:
    """Return the content of a kept file, at most one byte more than `MAX_BYTES`.

    A link is not followed, and a pipe does not block the call.

    Raises:
        OSError: the file can't be read, or is no regular file.
    """
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", name)
        return file.read(MAX_BYTES + 1)


def write_kept(folder: Path, name: str, content: bytes, *, replace: bool = True) -> None:
    """Write a kept file durably. If root writes the file, it belongs to the owner of the state file's folder.

    ``replace``: False keeps an existing file unchanged.

    Raises:
        OSError: the file can't be written.
    """
    with private_folder(folder, create=True) as parent:
        write_durably(parent, name, content, replace=replace, owner=os.fstat(parent))


def _make_folders(folder: Path) -> None:
    """Create a folder and its parents. If root creates a folder, it belongs to the owner of its parent."""
    if folder.is_dir():
        return
    _make_folders(folder.parent)
    folder.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        owner = folder.parent.stat()
        os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)

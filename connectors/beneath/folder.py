"""An open folder: operations on its direct entries, relative to its descriptor."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from connectors.beneath.system_calls import open_beneath, rename_exclusively

_NO_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP})


class NotRegularFile(OSError):
    """Something other than a regular file has the name: a folder, a pipe, a socket, a device or a link."""


class Folder:
    """An open folder, to be used as a context. ``path`` is its path for messages.

    Each name is the name of a direct entry of the folder. If this entry is a link, it is never followed.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self.path = path

    @classmethod
    def open_root(cls, path: Path, *, is_listed: bool = True) -> Self:
        """Open a folder that a person configured; links in its path are followed.

        ``is_listed``: the entries will be listed, or made durable. If False, the permission to enter the folder is enough.

        Raises:
            OSError: it does not exist, is no folder, or may not be listed.
        """
        return cls(os.open(path, _folder_flags(is_listed) | os.O_CLOEXEC), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the folder."""
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino

    @property
    def is_writable(self) -> bool:
        """True if this process may create and remove names in the folder."""
        return os.access(".", os.W_OK | os.X_OK, dir_fd=self.descriptor)

    def subfolder(self, name: str, *, is_listed: bool = True) -> Folder:
        """Open a folder below this folder; ``name`` may have several parts. See `open_root`.

        Raises:
            OSError: it does not exist, is no folder, or is reached over a link.
        """
        with self._named(name):
            return Folder(open_beneath(self.descriptor, name, _folder_flags(is_listed)), self.path / name)

    def entries(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """Return a context with the entries of the folder; their status is read relative to the folder's descriptor."""
        return os.scandir(self.descriptor)

    def status(self, base: str) -> os.stat_result:
        """Return the status of the file or folder with the name; for a link, the status of the link."""
        with self._named(base):
            return os.stat(base, dir_fd=self.descriptor, follow_symlinks=False)

    def has(self, base: str) -> bool:
        """Return True if something has the name."""
        try:
            self.status(base)
        except FileNotFoundError:
            return False
        return True

    def read_link(self, base: str) -> str:
        """Return the target of a link."""
        with self._named(base):
            return os.readlink(base, dir_fd=self.descriptor)

    def open_file(self, base: str) -> int:
        """Open a regular file for reading and return its descriptor. Never blocks.

        Raises:
            FileNotFoundError: nothing has the name.
            NotRegularFile: something else has the name.
        """
        with self._named(base):
            try:
                descriptor = open_beneath(self.descriptor, base, os.O_RDONLY)
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.ENXIO}:  # a link or a socket
                    raise _not_regular() from error
                raise
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise _not_regular()
            return descriptor

    def create(self, base: str, mode: int) -> int:
        """Create a file for writing and return its descriptor. The umask of the process applies to ``mode``.

        Raises:
            FileExistsError: something has the name, even a link that leads nowhere.
        """
        flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_RDWR
        with self._named(base):
            return os.open(base, flags, mode, dir_fd=self.descriptor)

    def make(self, base: str) -> None:
        """Create a folder durably, unless something has the name."""
        with self._named(base):
            try:
                os.mkdir(base, dir_fd=self.descriptor)
            except FileExistsError:
                return
        self.sync()

    def move(self, base: str, target: Folder, target_base: str) -> None:
        """Move the file or folder with the name into another folder, where its new name must be free.

        Raises:
            FileExistsError: something has that name.
            OSError: with EXDEV if the other folder is on another file system or mount.
        """
        with self._named(base):
            rename_exclusively(self.descriptor, base, target.descriptor, target_base)

    def replace(self, base: str, target_base: str) -> None:
        """Rename a file within the folder. A file that has the new name is replaced, and a link is not followed."""
        with self._named(base):
            os.replace(base, target_base, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, base: str) -> None:
        """Remove an entry that is no folder."""
        with self._named(base):
            os.unlink(base, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Make the names in the folder durable."""
        try:
            os.fsync(self.descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:  # some network file systems can't sync a folder, and need not
                raise

    @contextmanager
    def _named(self, name: str) -> Iterator[None]:
        """Give each OSError the whole path, because the error of a call by descriptor names only a part of the path."""
        try:
            yield
        except OSError as error:
            error.filename = str(self.path / name)
            raise


def _folder_flags(is_listed: bool) -> int:
    return os.O_DIRECTORY | (os.O_RDONLY if is_listed else os.O_PATH)


def _not_regular() -> NotRegularFile:
    return NotRegularFile(errno.EINVAL, "It is not a regular file")

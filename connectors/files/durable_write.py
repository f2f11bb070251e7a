"""Durable files: each file is written under a hidden name and then renamed, so a file with its final name is complete."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from types import TracebackType
from typing import Self

import msgspec

from connectors.beneath import Folder, RootedPath

_NAME_BYTES = 222
"""The limit for a name, so that an addition such as ``.rejected.ndjson`` or ``.receipt.json`` fits into 255 bytes."""
_SUFFIX_BYTES = 20
_SYNCED_AT_A_TIME = 8


class Access(msgspec.Struct, frozen=True):
    """The permissions and the group of a file."""

    mode: int
    group: int

    @classmethod
    def from_status(cls, status: os.stat_result) -> Access:
        """Return the access that a file's status states."""
        return cls(status.st_mode & 0o666, status.st_gid)


class NewFile:
    """A file that is written under a hidden name and gets its own name when it is complete. To be used as a context.

    ``key`` determines the hidden name. Each use has a different key, but a repetition after a crash has the same key. An
    existing file with the hidden name is removed: it comes from an attempt that crashed, or another account created it.
    ``access``: the permissions of the file.
    """

    def __init__(self, folder: Folder, key: str, access: Access) -> None:
        self.folder = folder
        self._hidden = f".{hashlib.blake2b(os.fsencode(key), digest_size=16).hexdigest()}.part"
        try:
            self.descriptor = folder.create(self._hidden, access.mode)
        except FileExistsError:
            folder.remove(self._hidden)
            self.descriptor = folder.create(self._hidden, access.mode)
        self._is_hidden = True
        status = os.fstat(self.descriptor)
        self._identity = (status.st_dev, status.st_ino)
        if status.st_gid != access.group:
            self._take_group(access.group)

    def _take_group(self, group: int) -> None:
        try:
            os.fchown(self.descriptor, -1, group)
        except OSError:  # the account is no member of that group; the file's own group gets no access
            os.fchmod(self.descriptor, os.fstat(self.descriptor).st_mode & 0o606)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception):  # any other exception is like a crash: the file stays
            self.discard()

    def write(self, parts: Iterable[bytes]) -> None:
        """Append to the content."""
        with os.fdopen(self.descriptor, "wb", closefd=False) as file:
            file.writelines(parts)

    def clear(self) -> None:
        """Remove the content."""
        os.ftruncate(self.descriptor, 0)
        os.lseek(self.descriptor, 0, os.SEEK_SET)

    def sync(self) -> None:
        """Make the content durable."""
        os.fsync(self.descriptor)

    def publish(self, base: str, *, replace: bool = False) -> None:
        """Give the file its name. The name is durable after its folder was synced.

        Raises:
            FileExistsError: another file has the name, and ``replace`` is False.
        """
        if replace:
            self.folder.replace(self._hidden, base)
        else:
            self.folder.move(self._hidden, self.folder, base)
        self._is_hidden = False

    def withdraw(self, base: str) -> None:
        """Remove the published name, unless another file has it now."""
        try:
            status = self.folder.status(base)
        except FileNotFoundError:
            return
        if (status.st_dev, status.st_ino) == self._identity:
            self.folder.remove(base)

    def discard(self) -> None:
        """Close the file, and remove it if it was not published."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
            if self._is_hidden:
                self.folder.remove(self._hidden)


def write(path: RootedPath, parts: Iterable[bytes], *, key: str, access: Access) -> None:
    """Write a file at ``path``, or replace an existing file. The file is durable when this returns. See `NewFile`."""
    with path.parent.make_folder() as folder, NewFile(folder, key, access) as file:
        file.write(parts)
        file.sync()
        file.publish(path.base, replace=True)
        folder.sync()


def sync_files(files: Sequence[NewFile]) -> list[OSError | None]:
    """Make the content of files durable. Return for each file the error, or None.

    Several files are flushed in parallel, because the file system then writes its journal once for all files.
    """
    if len(files) == 1:
        return [_sync_file(files[0])]
    with ThreadPoolExecutor(_SYNCED_AT_A_TIME, thread_name_prefix="sync") as threads:
        return list(threads.map(_sync_file, files))


def _sync_file(file: NewFile) -> OSError | None:
    try:
        file.sync()
    except OSError as error:
        return error
    return None


def shorten_name(path: PurePosixPath) -> PurePosixPath:
    """Return the path with a name short enough for additions such as ``NAME.receipt.json``.

    A file system accepts 255 bytes. A longer name is cut before its suffix and gets the beginning of its hash. So the result
    depends only on the name, and different names stay different.
    """
    name = path.name
    if len(os.fsencode(name)) <= _NAME_BYTES:
        return path
    suffix = path.suffix if len(os.fsencode(path.suffix)) <= _SUFFIX_BYTES else ""
    mark = "~" + hashlib.sha256(os.fsencode(name)).hexdigest()[:12]
    room = _NAME_BYTES - len(os.fsencode(mark + suffix))
    stem = os.fsencode(name.removesuffix(suffix))[:room].decode("utf-8", "ignore")
    return path.with_name(stem + mark + suffix)


def numbered_names(target: RootedPath) -> Iterator[RootedPath]:
    """Yield ``target`` and its numbered variants, such as ``run~2.csv``, without end."""
    yield target
    base = PurePosixPath(target.base)
    number = 2
    while True:
        yield target.with_base(f"{base.stem}~{number}{base.suffix}")
        number += 1


def existing_names(folder: Folder, target: RootedPath) -> Iterator[RootedPath]:
    """Yield the existing files with the name ``target`` or a numbered variant of it, up to the first free name."""
    for candidate in numbered_names(target):
        if not folder.has(candidate.base):
            return
        yield candidate

"""Durable files: each is complete or absent after a crash, under a name that no other file has."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

_NAME_BYTES = 222
"""Leaves room in 255 bytes for the longest addition: ``.``, ``~9999``, ``.rejected.ndjson`` or ``.receipt.json``, ``.part``."""
_SUFFIX_BYTES = 20
_SYNCED_AT_A_TIME = 8


def write(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file at ``path`` and replace an existing one. It is durable when this returns."""
    make_folder(path.parent)
    hidden = write_hidden(path, parts)
    hidden.rename(path)
    sync_folder(path.parent)


def write_hidden(path: Path, parts: Iterable[bytes]) -> Path:
    """Write the content of ``path`` under a hidden name beside it, and return that name.

    The content is durable then.
    """
    hidden = hidden_name(path)
    with hidden.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return hidden


def write_unsynced(path: Path, data: bytes) -> Path:
    """Write the content of ``path`` under a hidden name beside it, and return that name. It is not durable yet."""
    hidden = hidden_name(path)
    hidden.write_bytes(data)
    return hidden


def sync_files(paths: Sequence[Path]) -> list[OSError | None]:
    """Make the content of files durable; return the error or None for each.

    Several at a time, because the file system then writes its journal once for all that wait.
    """
    if len(paths) == 1:
        return [_sync_file(paths[0])]
    with ThreadPoolExecutor(_SYNCED_AT_A_TIME, thread_name_prefix="sync") as threads:
        return list(threads.map(_sync_file, paths))


def _sync_file(path: Path) -> OSError | None:
    try:
        _sync(path)
    except OSError as error:
        return error
    return None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shorten_name(path: PurePosixPath) -> PurePosixPath:
    """Return the path with a name short enough for additions such as ``NAME.receipt.json``.

    A file system accepts 255 bytes. A longer name is cut before its suffix and gets the start of its hash. So a name is always
    shortened in the same way, and two names never become equal.
    """
    name = path.name
    if len(os.fsencode(name)) <= _NAME_BYTES:
        return path
    suffix = path.suffix if len(os.fsencode(path.suffix)) <= _SUFFIX_BYTES else ""
    mark = "~" + hashlib.sha256(os.fsencode(name)).hexdigest()[:12]
    room = _NAME_BYTES - len(os.fsencode(mark + suffix))
    stem = os.fsencode(name.removesuffix(suffix))[:room].decode("utf-8", "ignore")
    return path.with_name(stem + mark + suffix)


def hidden_name(path: Path) -> Path:
    """Return the hidden name under which the content of ``path`` is written first. No scan reads it."""
    return path.with_name(f".{path.name}.part")


def reserve(target: Path, like: Path | None = None) -> Path:
    """Create an empty file as ``target`` or its first free numbered variant, and return that name.

    An empty file under such a name is a reservation that a crash left, and is used again, unless another caller in this process
    has it until its `release`. ``like``: another reservation; the new one is a link to it if possible, because file systems
    create few files fast after many were deleted, and the file that takes the name deletes the empty one.
    """
    folder = target.parent.stat()
    for candidate in _candidates(target):
        name = (folder.st_dev, folder.st_ino, candidate.name)
        with _RESERVING:
            if name in _RESERVED:
                continue
            _RESERVED.add(name)
            _NAMES[candidate] = name
        is_reserved = False
        try:
            is_reserved = _create_empty(candidate, like)
        finally:
            if not is_reserved:
                release(candidate)
        if is_reserved:
            return candidate
    raise AssertionError("there is always a next number")


def release(reserved: Path) -> None:
    """End a reservation, whether its name was used or not."""
    with _RESERVING:
        name = _NAMES.pop(reserved, None)
        if name is not None:
            _RESERVED.discard(name)


def _create_empty(path: Path, like: Path | None) -> bool:
    """Return True if there is an empty file with this name now."""
    try:
        if like is None or not _link(like, path):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC))
    except FileExistsError:
        return not path.lstat().st_size and path.is_file()
    return True


def _link(existing: Path, path: Path) -> bool:
    """Return True if ``path`` is a second name of a file now; False if it is gone or the file system has no such names.

    Raises:
        FileExistsError: another file has this name.
    """
    try:
        os.link(existing, path)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


_RESERVING = threading.Lock()
_RESERVED: set[tuple[int, int, str]] = set()
"""The reservations of this process: device and inode of the folder, and the name. Two pipelines may have one archive."""
_NAMES: dict[Path, tuple[int, int, str]] = {}


def existing_names(target: Path) -> Iterator[Path]:
    """Yield the existing files with the name ``target`` or a numbered variant of it, up to the first free name."""
    for candidate in _candidates(target):
        if not candidate.exists():
            return
        yield candidate


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some network file systems can't, and need not
            raise
    finally:
        os.close(descriptor)


def _candidates(target: Path) -> Iterator[Path]:
    yield target
    number = 2
    while True:
        yield target.with_name(f"{target.stem}~{number}{target.suffix}")
        number += 1

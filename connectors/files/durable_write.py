"""Durable files: each is complete or absent after a crash, under a name that no other file has."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

_NAME_BYTES = 222
"""Leaves room in 255 bytes for the longest addition: ``.``, ``~9999``, ``.rejected.ndjson`` or ``.receipt.json``, ``.part``."""
_SUFFIX_BYTES = 20


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


def reserve(target: Path) -> Path:
    """Create an empty file as ``target`` or its first free numbered variant, and return that name.

    An empty file under such a name is a reservation that a crash left, and is used again.
    """
    for candidate in _candidates(target):
        try:
            os.close(os.open(candidate, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC))
        except FileExistsError:
            status = candidate.lstat()
            if status.st_size or not candidate.is_file():
                continue
        return candidate
    raise AssertionError("there is always a next number")


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

"""Files that are there whole or not at all, under names that nobody else has, whatever is the last thing that happens."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

_NAME_BYTES = 222
"""With the longest that is added to a name (``.``, ``~9999``, ``.rejected.ndjson`` or ``.receipt.json``, ``.part``) it fits."""
_ENDING_BYTES = 20


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Put a file at ``path``, in the place of one that is there; durable once this returns."""
    make_folder(path.parent)
    hidden = write_hidden(path, pieces)
    hidden.rename(path)
    sync_folder(path.parent)


def write_hidden(path: Path, pieces: Iterable[bytes]) -> Path:
    """Write what is to become ``path`` under a hidden name beside it; its content is durable once this returns."""
    hidden = hidden_name(path)
    with hidden.open("wb") as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return hidden


def shorten_name(path: PurePosixPath) -> PurePosixPath:
    """The path with a name that leaves room for what is put beside the file, such as ``NAME.receipt.json``.

    A file system takes 255 bytes; a longer name is shortened before its ending and gets the start of its hash, so the same
    name is always shortened alike and no two become one.
    """
    name = path.name
    if len(os.fsencode(name)) <= _NAME_BYTES:
        return path
    ending = path.suffix if len(os.fsencode(path.suffix)) <= _ENDING_BYTES else ""
    mark = "~" + hashlib.sha256(os.fsencode(name)).hexdigest()[:12]
    room = _NAME_BYTES - len(os.fsencode(mark + ending))
    stem = os.fsencode(name.removesuffix(ending))[:room].decode("utf-8", "ignore")
    return path.with_name(stem + mark + ending)


def hidden_name(path: Path) -> Path:
    """Where something is written that is to become ``path``; no scan takes it."""
    return path.with_name(f".{path.name}.part")


def reserve(target: Path) -> Path:
    """The first name like ``target`` that is free, or reserved by an attempt that a crash ended; reserved now."""
    for candidate in _candidates(target):
        try:
            os.close(os.open(candidate, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC))
        except FileExistsError:
            status = candidate.lstat()
            if status.st_size or not candidate.is_file():
                continue
        return candidate
    raise AssertionError("there is always a next number")


def existing(target: Path) -> Iterator[Path]:
    """What is there under ``target`` and the names like it, up to the first that is free."""
    for candidate in _candidates(target):
        if not candidate.exists():
            return
        yield candidate


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make durable which names a folder holds."""
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

"""What becomes of a settled file. Every step may be the last before a crash, and every step may be done again.

A file is archived by one rename, so at no moment does it exist twice or nowhere. The name in the archive is reserved
first by an empty file: no file there is ever overwritten, and since empty files are never taken, an empty one in the
archive can only be a reservation that a crash left behind, to be used by the next. Where the archive lies on another
file system, the content is copied to a hidden name, hashed on the way, made durable and then renamed; a crash before the
original is unlinked is recognised by the equal copy.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from connectors.directory.identity import Identity, identity_of
from ingestd.sdk import SourceUnavailable

_CHUNK_BYTES = 2**20


def archive(path: Path, folder: Path, name: str, *, identity: Identity, sha256: str) -> bool:
    """Move ``path`` to ``name`` below ``folder``, or to a name like it; whether it was moved.

    A file that is gone, or is not the one of ``identity`` any more, is left alone.

    Raises:
        SourceUnavailable: the archive can't be written, or the disk is full; asked again, it is done then.
    """
    if not _is_still(path, identity):
        return False
    target = folder / PurePosixPath(name)
    try:
        _make_folder(target.parent)
        if target.parent.stat().st_dev == identity.device:
            return _rename(path, target, identity)
        return _move_across(path, target, identity, sha256)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not path.exists():
            return False  # somebody else took it away
        raise SourceUnavailable(
            f"{path} can't be archived in {folder}: {error.strerror}. It stays until it can."
        ) from error


def delete(path: Path, *, identity: Identity) -> bool:
    """Delete ``path`` if it is still the file of ``identity``; whether it was deleted.

    Raises:
        SourceUnavailable: it may not be deleted now.
    """
    if not _is_still(path, identity):
        return False
    try:
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise SourceUnavailable(f"{path} can't be deleted: {error.strerror}. It stays until it can.") from error
    return True


def _is_still(path: Path, identity: Identity) -> bool:
    try:
        return identity_of(path.lstat()).same_content(identity)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SourceUnavailable(f"The status of {path} can't be read: {error.strerror}.") from error


def _rename(path: Path, target: Path, identity: Identity) -> bool:
    taken = _reserve(target)
    try:
        path.rename(taken)
    except OSError:
        taken.unlink()
        raise
    if not identity_of(taken.lstat()).same_content(identity):
        _put_back(taken, path)
        return False
    _sync_folder(taken.parent)
    _sync_folder(path.parent)
    return True


def _put_back(taken: Path, path: Path) -> None:
    """A file that was replaced between the look and the rename goes back unread, unless yet another one is there by now."""
    with contextlib.suppress(FileExistsError):
        try:
            os.link(taken, path)
        except PermissionError:  # a file system without hard links
            if not path.exists():
                taken.rename(path)
        else:
            taken.unlink()


def _move_across(path: Path, target: Path, identity: Identity, sha256: str) -> bool:
    if not any(_is_copy(candidate, identity, sha256) for candidate in _existing(target)):
        hidden = target.with_name(f".{target.name}.part")
        if _copy(path, hidden) != sha256:
            hidden.unlink()
            return False
        os.utime(hidden, ns=(identity.mtime_ns, identity.mtime_ns))
        hidden.rename(_reserve(target))
        _sync_folder(target.parent)
    return delete(path, identity=identity)


def _copy(path: Path, target: Path) -> str:
    """Copy and make durable; the hash of what was copied."""
    digest = hashlib.sha256()
    with path.open("rb") as source, target.open("wb") as copy:
        while data := source.read(_CHUNK_BYTES):
            digest.update(data)
            copy.write(data)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def _is_copy(path: Path, identity: Identity, sha256: str) -> bool:
    """Whether an attempt that a crash ended has left this copy: the times of some file systems are exact to 2 seconds."""
    status = path.stat()
    if not path.is_file() or status.st_size != identity.size or abs(status.st_mtime_ns - identity.mtime_ns) > 2 * 10**9:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _existing(target: Path) -> Iterator[Path]:
    for candidate in _candidates(target):
        if not candidate.exists():
            return
        yield candidate


def _reserve(target: Path) -> Path:
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


def _candidates(target: Path) -> Iterator[Path]:
    yield target
    number = 2
    while True:
        yield target.with_name(f"{target.stem}~{number}{target.suffix}")
        number += 1


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some network file systems can't, and need not
            raise
    finally:
        os.close(descriptor)

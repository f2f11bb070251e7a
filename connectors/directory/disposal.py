"""What becomes of a settled file. Every step may be the last before a crash, and every step may be done again.

A file is archived by one rename, so at no moment does it exist twice or nowhere. The name in the archive is reserved
first by an empty file: no file there is ever overwritten, and since empty files are never taken, an empty one in the
archive can only be a reservation that a crash left behind, to be used by the next. What is said about the file (`Note`)
stands beside the reserved name before the file takes it: a file that has arrived has its note. Where the archive lies on another
file system, the content is copied to a hidden name, hashed on the way, made durable and then renamed; a crash before the
original is unlinked is recognised by the equal copy.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from connectors.files.durable_write import existing, hidden_name, make_folder, reserve, shorten_name, sync_folder, write
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import SourceUnavailable

_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is put beside a file that moves; both are told the name that the file takes."""

    place: Callable[[Path], Path]
    content: Callable[[Path], bytes]

    def put(self, taken: Path) -> None:
        """Write it, durably."""
        write(self.place(taken), [self.content(taken)])

    def take_back(self, taken: Path) -> None:
        """The file did not take the name after all."""
        self.place(taken).unlink(missing_ok=True)


def archive(path: Path, folder: Path, name: str, *, identity: Identity, sha256: str, note: Note | None = None) -> bool:
    """Move ``path`` to ``name`` below ``folder``, or to a name like it; whether it was moved. A very long name is shortened.

    A file that is gone, or is not the one of ``identity`` any more, is left alone.

    Raises:
        SourceUnavailable: the archive can't be written, or the disk is full; asked again, it is done then.
    """
    if not _is_still(path, identity):
        return False
    target = folder / shorten_name(PurePosixPath(name))
    try:
        make_folder(target.parent)
        if target.parent.stat().st_dev == identity.device:
            try:
                return _rename(path, target, identity, note)
            except OSError as error:
                if error.errno != errno.EXDEV:  # two mounts of one file system are two to a rename
                    raise
        return _move_across(path, target, identity, sha256, note)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            return False  # somebody else took it away
        raise SourceUnavailable(
            f"{path} can't be archived in {folder}: {describe_error(error)} It stays until it can."
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
        sync_folder(path.parent)
    except OSError as error:
        raise SourceUnavailable(f"{path} can't be deleted: {describe_error(error)} It stays until it can.") from error
    return True


def _is_still(path: Path, identity: Identity) -> bool:
    try:
        return Identity.from_status(path.lstat()).same_content(identity)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SourceUnavailable(f"The status of {path} can't be read: {describe_error(error)}") from error


def _rename(path: Path, target: Path, identity: Identity, note: Note | None) -> bool:
    taken = reserve(target)
    try:
        if note is not None:
            note.put(taken)
        path.rename(taken)
    except OSError:
        if note is not None:
            note.take_back(taken)
        taken.unlink()
        raise
    if not Identity.from_status(taken.lstat()).same_content(identity):
        if note is not None:
            note.take_back(taken)
        _put_back(taken, path)
        return False
    sync_folder(taken.parent)
    sync_folder(path.parent)
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


def _move_across(path: Path, target: Path, identity: Identity, sha256: str, note: Note | None) -> bool:
    if not any(_is_copy(candidate, identity, sha256) for candidate in existing(target)):
        hidden = hidden_name(target)
        if _copy(path, hidden) != sha256:
            hidden.unlink()
            return False
        os.utime(hidden, ns=(identity.mtime_ns, identity.mtime_ns))
        taken = reserve(target)
        if note is not None:
            note.put(taken)
        hidden.rename(taken)
        sync_folder(target.parent)
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

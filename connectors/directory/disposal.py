"""Disposal of a file: archive or delete it.

Every step may be the last one before a crash, and can be repeated. A file is archived by one rename, so it never exists
twice or not at all. An empty file reserves the name in the archive first, and no file there is ever overwritten. Because
empty files are never archived, an empty file in the archive is a reservation that a crash left, and the next attempt uses
it. The text about the file (`Note`) is written beside the reserved name before the rename, so an archived file always has
its note. If the archive is on another file system, the content is copied to a hidden name, hashed on the way, made durable
and renamed. After a crash before the original is deleted, the equal copy is recognised.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from connectors.files.durable_write import (
    existing_names,
    hidden_name,
    make_folder,
    reserve,
    shorten_name,
    sync_folder,
    write,
)
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import SourceUnavailable

_BLOCK_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A text beside a file that moves. Both functions receive the path to which the file moves."""

    path_for: Callable[[Path], Path]
    content_for: Callable[[Path], bytes]

    def write(self, archived: Path) -> None:
        """Write the text, durably."""
        write(self.path_for(archived), [self.content_for(archived)])

    def remove(self, archived: Path) -> None:
        """Delete the text, because the file did not move."""
        self.path_for(archived).unlink(missing_ok=True)


def archive(path: Path, folder: Path, name: str, *, identity: Identity, sha256: str, note: Note | None = None) -> bool:
    """Move ``path`` to ``name`` below ``folder``, or to a name like it; return True if it was moved.

    A very long name is shortened. A file that does not exist, or is no longer the one of ``identity``, is not touched.

    Raises:
        SourceUnavailable: the archive can't be written, or the disk is full. The call can be repeated.
    """
    if not _is_same_file(path, identity):
        return False
    target = folder / shorten_name(PurePosixPath(name))
    try:
        make_folder(target.parent)
        if target.parent.stat().st_dev == identity.device:
            try:
                return _rename(path, target, identity, note)
            except OSError as error:
                if error.errno != errno.EXDEV:  # between two mounts of one file system, rename fails, too
                    raise
        return _move_across(path, target, identity, sha256, note)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            return False  # another program removed it
        raise SourceUnavailable(
            f"{path} can't be archived in {folder}: {describe_error(error)} It stays until it can."
        ) from error


def delete(path: Path, *, identity: Identity) -> bool:
    """Delete ``path`` if it is still the file of ``identity``; return True if it was deleted.

    Raises:
        SourceUnavailable: it can't be deleted now.
    """
    if not _is_same_file(path, identity):
        return False
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise SourceUnavailable(f"{path} can't be deleted: {describe_error(error)} It stays until it can.") from error
    return True


def _is_same_file(path: Path, identity: Identity) -> bool:
    try:
        return Identity.from_status(path.lstat()).has_same_content(identity)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SourceUnavailable(f"The status of {path} can't be read: {describe_error(error)}") from error


def _rename(path: Path, target: Path, identity: Identity, note: Note | None) -> bool:
    archived = reserve(target)
    try:
        if note is not None:
            note.write(archived)
        path.rename(archived)
    except OSError:
        if note is not None:
            note.remove(archived)
        archived.unlink()
        raise
    if not Identity.from_status(archived.lstat()).has_same_content(identity):
        if note is not None:
            note.remove(archived)
        _move_back(archived, path)
        return False
    sync_folder(archived.parent)
    sync_folder(path.parent)
    return True


def _move_back(archived: Path, path: Path) -> None:
    """Move back a file that replaced the original just before the rename, unless ``path`` exists again."""
    with contextlib.suppress(FileExistsError):
        try:
            os.link(archived, path)
        except PermissionError:  # a file system without hard links
            if not path.exists():
                archived.rename(path)
        else:
            archived.unlink()


def _move_across(path: Path, target: Path, identity: Identity, sha256: str, note: Note | None) -> bool:
    if not any(_is_copy(candidate, identity, sha256) for candidate in existing_names(target)):
        hidden = hidden_name(target)
        if _copy(path, hidden) != sha256:
            hidden.unlink()
            return False
        os.utime(hidden, ns=(identity.mtime_ns, identity.mtime_ns))
        archived = reserve(target)
        if note is not None:
            note.write(archived)
        hidden.rename(archived)
        sync_folder(target.parent)
    return delete(path, identity=identity)


def _copy(path: Path, target: Path) -> str:
    """Copy a file durably, and return the hash of what was copied."""
    digest = hashlib.sha256()
    with path.open("rb") as source, target.open("wb") as copy:
        while data := source.read(_BLOCK_BYTES):
            digest.update(data)
            copy.write(data)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def _is_copy(path: Path, identity: Identity, sha256: str) -> bool:
    """Return True if an attempt that a crash ended made this copy.

    Times of some file systems are exact to 2 seconds.
    """
    status = path.stat()
    if not path.is_file() or status.st_size != identity.size or abs(status.st_mtime_ns - identity.mtime_ns) > 2 * 10**9:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256

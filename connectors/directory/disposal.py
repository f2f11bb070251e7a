"""Disposal of a file: archive or delete it.

Every step may be the last one before a crash, and can be repeated. A file is archived by one rename, so it never exists
twice or not at all. An empty file reserves the name in the archive first, and no file there is ever overwritten. Because
empty files are never archived, an empty file in the archive is a reservation that a crash left, and the next attempt uses
it. The text about the file (`Note`) is written beside the reserved name before the rename, so an archived file always has
its note. If the archive is on another file system, the content is copied to a hidden name, hashed on the way, made durable
and renamed. After a crash before the original is deleted, the equal copy is recognised.

Files that are archived together take each step together, so that each folder is made durable once for all of them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from connectors.files.durable_write import (
    existing_names,
    hidden_name,
    make_folder,
    release,
    reserve,
    shorten_name,
    sync_files,
    sync_folder,
    write,
    write_unsynced,
)
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import SourceUnavailable

_BLOCK_BYTES = 2**20


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A text beside a file that moves. Both functions receive the path to which the file moves."""

    path_for: Callable[[Path], Path]
    content_for: Callable[[Path], bytes]

    def write(self, archived: Path) -> None:
        """Write the text, durably."""
        write(self.path_for(archived), [self.content_for(archived)])

    def remove(self, archived: Path) -> None:
        """Delete the text, because the file did not move."""
        self.path_for(archived).unlink(missing_ok=True)


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A file ``path`` that moves to ``name`` below ``folder``, or to a name like it. ``note``: the text about it."""

    path: Path
    folder: Path
    name: str
    identity: Identity
    sha256: str
    note: Note | None = None


def archive(path: Path, folder: Path, name: str, *, identity: Identity, sha256: str, note: Note | None = None) -> bool:
    """Move ``path`` to ``name`` below ``folder``, or to a name like it; return True if it was moved.

    A very long name is shortened. A file that does not exist, or is no longer the one of ``identity``, is not touched.

    Raises:
        SourceUnavailable: the archive can't be written, or the disk is full. The call can be repeated.
    """
    move = Move(path=path, folder=folder, name=name, identity=identity, sha256=sha256, note=note)
    (result,) = archive_together([move])
    if isinstance(result, SourceUnavailable):
        raise result
    return result


def archive_together(moves: Sequence[Move]) -> list[bool | SourceUnavailable]:
    """Do what `archive` does for several files; return its result or its error for each."""
    transfers: list[_Transfer] = []
    for move in moves:
        transfers.append(_Transfer(move, transfers[-1] if transfers else None))
    try:
        _take_step(transfers, _Transfer.prepare)
        _sync_notes([transfer for transfer in transfers if transfer.is_open and transfer.hidden_note is not None])
        _take_step(transfers, _Transfer.publish_note)
        _sync_folders(transfers, lambda one: [] if one.note_path is None else [one.note_path.parent])
        _take_step(transfers, _Transfer.rename)
        _sync_folders(transfers, lambda one: [one.target.parent, one.move.path.parent])
    finally:
        for transfer in transfers:
            transfer.release()
    return [transfer.result for transfer in transfers]


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
        raise SourceUnavailable(
            f"{path} can't be deleted: {describe_error(error)} It stays until that is possible."
        ) from error
    return True


def _is_same_file(path: Path, identity: Identity) -> bool:
    try:
        return Identity.from_status(path.lstat()).has_same_content(identity)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SourceUnavailable(f"The status of {path} can't be read: {describe_error(error)}") from error


class _Transfer:
    """A file on its way to the archive. ``result`` is final unless ``is_open``."""

    def __init__(self, move: Move, before: _Transfer | None) -> None:
        self.move = move
        self._before = before
        self.result: bool | SourceUnavailable = False
        self.is_open = True
        self.is_moved = False
        self.archived: Path | None = None
        self.note_path: Path | None = None
        self.target = move.folder / shorten_name(PurePosixPath(move.name))
        self.hidden_note: Path | None = None

    def prepare(self) -> None:
        """Reserve a name in the archive, and write the note under a hidden name beside it."""
        move = self.move
        if not _is_same_file(move.path, move.identity):
            self._end(moved=False)
            return
        make_folder(self.target.parent)
        if self.target.parent.stat().st_dev != move.identity.device:
            self._end(moved=_move_across(move, self.target))
            return
        self.archived = reserve(self.target, like=self._before.archived if self._before is not None else None)
        if move.note is not None:
            note_path = move.note.path_for(self.archived)
            make_folder(note_path.parent)
            self.hidden_note = write_unsynced(note_path, move.note.content_for(self.archived))
            self.note_path = note_path

    def publish_note(self) -> None:
        """Give the note its name; it is durable after its folder is."""
        if self.hidden_note is not None and self.note_path is not None:
            self.hidden_note.rename(self.note_path)

    def rename(self) -> None:
        """Move the file."""
        move, archived = self.move, self.archived
        if archived is None:
            return
        try:
            move.path.rename(archived)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._undo()  # between two mounts of one file system, rename fails, too
            self._end(moved=_move_across(move, self.target))
            return
        if Identity.from_status(archived.lstat()).is_renamed(move.identity):
            self.is_moved = self.result = True
            return
        if move.note is not None:
            move.note.remove(archived)
        _move_back(archived, move.path)
        self._end(moved=False)

    def fail(self, error: OSError) -> None:
        """End the transfer because of an error; a file that was not moved stays, without a note."""
        path, folder = self.move.path, self.move.folder
        if not self.is_moved:
            try:
                self._undo()
            except OSError as other:
                error = other
            if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
                self._end(moved=False)  # another program removed it
                return
        self.is_open = False
        self.result = SourceUnavailable(
            f"{path} can't be archived in {folder}: {describe_error(error)} It stays until that is possible."
        )
        self.result.__cause__ = error

    def refuse(self, error: SourceUnavailable) -> None:
        """End the transfer with the error of a step."""
        self.is_open = False
        self.result = error

    def release(self) -> None:
        """End the reservation of the name."""
        if self.archived is not None:
            release(self.archived)

    def _end(self, *, moved: bool) -> None:
        self.is_open = False
        self.result = moved

    def _undo(self) -> None:
        if self.archived is not None:
            if self.move.note is not None:
                self.move.note.remove(self.archived)
            self.archived.unlink(missing_ok=True)


def _take_step(transfers: Iterable[_Transfer], step: Callable[[_Transfer], None]) -> None:
    for transfer in transfers:
        if transfer.is_open:
            try:
                step(transfer)
            except OSError as error:
                transfer.fail(error)
            except SourceUnavailable as error:
                transfer.refuse(error)


def _sync_notes(transfers: Sequence[_Transfer]) -> None:
    hidden = [transfer.hidden_note for transfer in transfers if transfer.hidden_note is not None]
    if hidden:
        for transfer, error in zip(transfers, sync_files(hidden), strict=True):
            if error is not None:
                transfer.fail(error)


def _sync_folders(transfers: Iterable[_Transfer], folders_of: Callable[[_Transfer], Iterable[Path]]) -> None:
    """Make the names in the folders durable; an error is that of each file there."""
    waiting: dict[Path, list[_Transfer]] = {}
    for transfer in transfers:
        if transfer.is_open:
            for folder in dict.fromkeys(folders_of(transfer)):
                waiting.setdefault(folder, []).append(transfer)
    for folder, concerned in waiting.items():
        try:
            sync_folder(folder)
        except OSError as error:
            for transfer in concerned:
                if transfer.is_open:
                    transfer.fail(error)


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


def _move_across(move: Move, target: Path) -> bool:
    path, identity = move.path, move.identity
    if not any(_is_copy(candidate, identity, move.sha256) for candidate in existing_names(target)):
        hidden = hidden_name(target)
        if _copy(path, hidden) != move.sha256:
            hidden.unlink()
            return False
        os.utime(hidden, ns=(identity.mtime_ns, identity.mtime_ns))
        archived = reserve(target)
        try:
            if move.note is not None:
                move.note.write(archived)
            hidden.rename(archived)
        finally:
            release(archived)
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

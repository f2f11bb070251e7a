"""Disposal of a file: archive or delete it.

The process may crash after any step, because each step can be repeated. A file is archived by one rename to a free name. So
the file always exists exactly once, and no file in the archive is ever overwritten, even if other programs write there. The
text about the file (`Note`) gets its final name before the rename, so an archived file always has its note. The process that
first creates a note under a name keeps this name. Another process with a different note takes the next numbered name. A note
with equal content comes from an attempt that crashed, and is replaced.

If the archive is on another file system, the content is copied to a hidden name, hashed during the copy, made durable and
renamed. If the process crashes before it deletes the original, the next attempt recognises the equal copy. If several files are
archived together, each step is done for all files before the next step, so that each folder is made durable only once.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

import msgspec

from connectors.beneath import Folder, NotRegularFile, OpenFolders, RootedPath
from connectors.files.durable_write import Access, NewFile, existing_names, numbered_names, shorten_name, sync_files
from connectors.files.identity import Identity
from connectors.filesystem import describe_error
from ingestd.sdk import SourceUnavailable

_BLOCK_BYTES = 2**20


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A text file about a file that is moved. Both functions get the path to which that file is moved."""

    path_for: Callable[[RootedPath], RootedPath]
    content_for: Callable[[RootedPath], bytes]


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The move of a file ``path`` to ``name`` below ``folder``, or to a numbered variant of the name, with its note."""

    path: RootedPath
    folder: RootedPath
    name: str
    identity: Identity
    sha256: str
    note: Note | None = None

    @property
    def key(self) -> str:
        """A text that identifies the move. If the move is repeated after a crash, it has the same key."""
        status = self.identity
        return f"{os.uname().nodename} {self.path} {status.device} {status.inode} {status.mtime_ns} {self.sha256}"


def archive(
    path: RootedPath, folder: RootedPath, name: str, *, identity: Identity, sha256: str, note: Note | None = None
) -> bool:
    """Move ``path`` to ``name`` below ``folder``, or to a numbered variant of the name. Return True if the file was moved.

    A very long name is shortened. If the file does not exist or no longer has ``identity``, it is not moved.

    Raises:
        SourceUnavailable: the archive can't be written, for example because the disk is full. The call can be repeated.
    """
    move = Move(path=path, folder=folder, name=name, identity=identity, sha256=sha256, note=note)
    (result,) = archive_together([move])
    if isinstance(result, SourceUnavailable):
        raise result
    return result


def archive_together(moves: Sequence[Move]) -> list[bool | SourceUnavailable]:
    """Archive several files as `archive` does. Return the result or the error of each file."""
    with OpenFolders() as folders:
        transfers = [_Transfer(move, folders) for move in moves]
        try:
            _take_step(transfers, _Transfer.prepare)
            _sync_notes([transfer for transfer in transfers if transfer.is_open and transfer.note is not None])
            _take_step(transfers, _Transfer.publish_note)
            _sync_folders(transfers, lambda one: [] if one.note is None else [one.note.folder])
            _take_step(transfers, _Transfer.move_file)
            _sync_folders(transfers, lambda one: [folders.get(one.archived.parent), folders.get(one.move.path.parent)])
        except Exception:
            for transfer in transfers:
                transfer.close_note()
            raise
    return [transfer.result for transfer in transfers]


def delete(path: RootedPath, *, identity: Identity) -> bool:
    """Delete ``path`` if the file still has ``identity``. Return True if the file was deleted.

    Raises:
        SourceUnavailable: the file can't be deleted now.
    """
    try:
        with path.parent.open_folder() as folder:
            if not Identity.from_status(folder.status(path.base)).has_same_content(identity):
                return False
            folder.remove(path.base)
            folder.sync()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise SourceUnavailable(
            f"{path} can't be deleted: {describe_error(error)} It stays until that is possible."
        ) from error
    return True


class _Transfer:
    """The archiving of one file. ``is_open``: ``result`` is not final. ``archived``: the chosen path in the archive."""

    def __init__(self, move: Move, folders: OpenFolders) -> None:
        self.move = move
        self.result: bool | SourceUnavailable = False
        self.is_open = True
        self.archived = move.folder / shorten_name(PurePosixPath(move.name)).as_posix()
        self.note: NewFile | None = None
        self._folders = folders
        self._names = numbered_names(self.archived)
        self._note_base = ""
        self._note_content = b""
        self._has_created_note = False
        self._access = Access(0, -1)

    def prepare(self) -> None:
        """Choose a name in the archive, and write the note under a hidden name. To another file system, copy the file now."""
        move = self.move
        try:
            status = self._folders.get(move.path.parent).status(move.path.base)
        except FileNotFoundError:
            self._end(moved=False)
            return
        if not Identity.from_status(status).has_same_content(move.identity):
            self._end(moved=False)
            return
        self._access = Access.from_status(status)
        if self._folders.make(self.archived.parent).identity[0] != move.identity.device:
            self._end(moved=self._copy())
            return
        self._choose()

    def publish_note(self) -> None:
        """Rename the note from its hidden name to its final name. The caller makes the folder durable."""
        while self.note is not None and not self._publish(self.note):
            self._choose()
            self.note.sync()

    def move_file(self) -> None:
        """Rename the file into the archive. If another program replaced the file just before, move this file back."""
        path = self.move.path
        source = self._folders.get(path.parent)
        while True:
            target = self._folders.get(self.archived.parent)
            try:
                source.move(path.base, target, self.archived.base)
            except FileExistsError:
                self._choose_next()
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._withdraw_note()  # rename also fails between two mounts of one file system
                self._end(moved=self._copy())
                return
            else:
                break
        if Identity.from_status(target.status(self.archived.base)).is_renamed(self.move.identity):
            self.result = True
            self.close_note()
            return
        self._withdraw_note()
        _move_back(target, self.archived.base, source, path)
        self._end(moved=False)

    def fail(self, error: OSError) -> None:
        """End the transfer because of an error. If the file was not moved, its note is withdrawn."""
        path, folder = self.move.path, self.move.folder
        if self.result is not True:
            try:
                self._withdraw_note()
                if isinstance(error, FileNotFoundError) and not self._folders.get(path.parent).has(path.base):
                    self._end(moved=False)  # another program has removed the file
                    return
            except OSError as other:
                error = other
        self.is_open = False
        self.result = SourceUnavailable(
            f"{path} can't be archived in {folder}: {describe_error(error)} It stays until that is possible."
        )
        self.result.__cause__ = error

    def refuse(self, error: SourceUnavailable) -> None:
        """End the transfer with the error of a step."""
        self.is_open = False
        self.result = error
        self.close_note()

    def _end(self, *, moved: bool) -> None:
        self.is_open = False
        self.result = moved

    def _choose(self) -> None:
        """Choose the next free name for the file, and write the note under a hidden name."""
        folder = self._folders.make(self.archived.parent)
        self.archived = next(name for name in self._names if self._is_free(folder, name.base))
        note = self.move.note
        if note is not None:
            path = note.path_for(self.archived)
            self._note_base, self._note_content = path.base, note.content_for(self.archived)
            self.note = NewFile(self._folders.make(path.parent), f"note of {self.move.key}", self._access)
            self.note.write([self._note_content])

    def _is_free(self, folder: Folder, base: str) -> bool:
        """Return True if the name is free, or belongs to the file itself: after a crash a file may have two names."""
        try:
            return Identity.from_status(folder.status(base))[:2] == self.move.identity[:2]
        except FileNotFoundError:
            return True

    def _choose_next(self) -> None:
        """Choose the next name, because another file took this name. When this method returns, the note is durable."""
        self._withdraw_note()
        self._choose()
        if self.note is not None:
            self.note.sync()
            self.publish_note()
            self.note.folder.sync()

    def _publish(self, note: NewFile) -> bool:
        """Rename the note to its final name. Return False if a file with different content has this name."""
        try:
            note.publish(self._note_base)
        except FileExistsError:
            if _content(note.folder, self._note_base, len(self._note_content) + 1) != self._note_content:
                self.close_note()
                return False
            # After the replacement this process owns the note. Other processes withdraw only files that they created.
            note.publish(self._note_base, replace=True)
        else:
            self._has_created_note = True
        return True

    def _withdraw_note(self) -> None:
        """Delete the note, because the file did not get the chosen name.

        A note that another attempt created is kept, because that attempt may have archived the file.
        """
        if self.note is not None and self._has_created_note:
            self.note.withdraw(self._note_base)
        self.close_note()

    def close_note(self) -> None:
        """Close the note, and remove it if it was not published."""
        note, self.note, self._has_created_note = self.note, None, False
        if note is not None:
            note.discard()

    def _copy(self) -> bool:
        """Copy the file to another file system, and delete the original. Return True if the original was deleted."""
        move, folder = self.move, self._folders.get(self.archived.parent)
        first = move.folder / shorten_name(PurePosixPath(move.name)).as_posix()
        if any(self._is_copy(folder, candidate) for candidate in existing_names(folder, first)):
            return delete(move.path, identity=move.identity)
        self._names = numbered_names(first)
        source = self._folders.get(move.path.parent).open_file(move.path.base)
        with os.fdopen(source, "rb") as original, NewFile(folder, f"copy of {move.key}", self._access) as copy:
            if _copy_content(original.fileno(), copy) != move.sha256:
                return False
            os.utime(copy.descriptor, ns=(move.identity.mtime_ns, move.identity.mtime_ns))
            copy.sync()
            self._choose_next()
            while True:
                try:
                    copy.publish(self.archived.base)
                except FileExistsError:
                    self._choose_next()
                else:
                    break
        folder.sync()
        self.close_note()
        return delete(move.path, identity=move.identity)

    def _is_copy(self, folder: Folder, candidate: RootedPath) -> bool:
        """Return True if ``candidate`` and its note are the complete result of an attempt that crashed."""
        if not _is_copy(folder, candidate.base, self.move.identity, self.move.sha256):
            return False
        if self.move.note is None:
            return True
        path, content = self.move.note.path_for(candidate), self.move.note.content_for(candidate)
        return _content(self._folders.make(path.parent), path.base, len(content) + 1) == content


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
    notes = [transfer.note for transfer in transfers if transfer.note is not None]
    if notes:
        for transfer, error in zip(transfers, sync_files(notes), strict=True):
            if error is not None:
                transfer.fail(error)


def _sync_folders(transfers: Iterable[_Transfer], folders_of: Callable[[_Transfer], Iterable[Folder]]) -> None:
    """Make the names in the folders of each transfer durable. If this fails for a folder, all transfers that use it fail."""
    waiting: dict[Folder, list[_Transfer]] = {}
    for transfer in transfers:
        if transfer.is_open:
            for folder in dict.fromkeys(folders_of(transfer)):
                waiting.setdefault(folder, []).append(transfer)
    for folder, concerned in waiting.items():
        try:
            folder.sync()
        except OSError as error:
            for transfer in concerned:
                if transfer.is_open:
                    transfer.fail(error)


def _move_back(archive: Folder, base: str, folder: Folder, path: RootedPath) -> None:
    """Move a file that was archived by mistake back to its former path ``path``, or to a numbered variant of this path."""
    for name in numbered_names(path):
        try:
            archive.move(base, folder, name.base)
        except FileExistsError:
            continue
        return


def _copy_content(source: int, copy: NewFile) -> str:
    """Copy a file, and return the SHA-256 of the copied content."""
    digest = hashlib.sha256()
    while data := os.read(source, _BLOCK_BYTES):
        digest.update(data)
        copy.write([data])
    return digest.hexdigest()


def _is_copy(folder: Folder, base: str, identity: Identity, sha256: str) -> bool:
    """Return True if the file has this size, content and time. Some file systems round times, so 2 s are tolerated."""
    status = folder.status(base)
    if status.st_size != identity.size or abs(status.st_mtime_ns - identity.mtime_ns) > 2 * 10**9:
        return False
    try:
        descriptor = folder.open_file(base)
    except NotRegularFile:
        return False
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _content(folder: Folder, base: str, most: int) -> bytes | None:
    """Return the first ``most`` bytes of a file; None if there is no regular file of this name."""
    try:
        descriptor = folder.open_file(base)
    except (FileNotFoundError, NotRegularFile):
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)

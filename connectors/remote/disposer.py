"""The disposal of acknowledged files on a server: each file is kept, archived or deleted.

As in an archive on disk, the rejected rows are written first, then the receipt, and the file moves last. Every step can be
repeated after a crash. If a crash comes between the copy and the deletion of the original, the copy is recognised by its
content and its receipt.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import msgspec

from connectors.beneath import RootedPath
from connectors.directory.archiver import REASON_SUFFIX, describe_failure
from connectors.directory.other_pipelines import check_removable, check_writable
from connectors.files import receipt as receipts
from connectors.files.durable_write import shorten_name
from connectors.files.identity import Identity
from connectors.files.quarantine import write_quarantine
from connectors.files.receipt import AcknowledgedFile
from connectors.files.rejected_rows import QuarantineSource
from connectors.filesystem import temporary_file
from connectors.formats import Format
from connectors.remote.address import join
from connectors.remote.folder import RemoteDropFile, RemoteFolder
from connectors.remote.options import RemoteOptions
from connectors.remote.store import RemoteChanged, RemoteStore
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

_VARIANTS = 10_000
"""The maximum number of variants of a name, such as ``run~2.csv``, in the archive."""
_DISPLACED = 5


class RemotePlaces:
    """The folders of the server to which ingestd writes files."""

    def __init__(self, options: RemoteOptions) -> None:
        address = options.address
        below = address.below
        self.archive = below(options.archive) if options.archive is not None else None
        parent = self.archive if options.after == "archive" else None
        self.quarantine = _place(below, options.quarantine, parent, "rejected")
        self.failed = _place(below, options.failed, parent, "failed")
        self.receipts = _place(below, options.receipts, None, "") if options.receipt else None

    @property
    def all(self) -> list[str]:
        """All folders that are set. The source does not list these folders."""
        found = (self.archive, self.quarantine, self.failed, self.receipts)
        return [folder for folder in found if folder is not None]


class _Note(msgspec.Struct, frozen=True):
    """The receipt of an archived file, or the reason why a file failed. Both functions get the path to which the file moves."""

    path_for: Callable[[str], str]
    content_for: Callable[[str], bytes]


class _RejectedRows(msgspec.Struct, frozen=True):
    """The address of the file with rejected rows (empty: no file was written), and a sentence about the rows."""

    address: str = ""
    remark: str = ""


class RemoteDisposer:
    """Keeps, archives or deletes acknowledged files of a server. Implements `Disposer`."""

    def __init__(
        self,
        options: RemoteOptions,
        places: RemotePlaces,
        folder: RemoteFolder,
        *,
        format_for: Callable[[str], Format],
    ) -> None:
        self._options = options
        self._address = options.address
        self._places = places
        self._folder = folder
        self._store: RemoteStore = folder.store
        self._format_for = format_for

    def check_removable(self, name: str, ended: float) -> None:
        """See `Disposer.check_removable`."""
        check_removable(self._folder.shown(name), self._readers_of(name))
        if self._options.after == "archive":
            self._check_writable(join(self._archive_folder(ended), name))

    def _readers_of(self, name: str) -> Collection[str]:
        return self._folder.readers_of(self._folder.path(name))

    def _check_writable(self, path: str) -> None:
        check_writable(self._address.display(path), self._folder.readers_of(path))

    def dispose(self, files: Sequence[AcknowledgedFile]) -> list[SourceError | None]:
        """See `Disposer.dispose`. Files are processed one by one, because a server makes each request durable separately."""
        failures: list[SourceError | None] = []
        for file in files:
            try:
                self._dispose(file)
                failures.append(None)
            except SourceError as error:
                failures.append(error)
        return failures

    def _dispose(self, file: AcknowledgedFile) -> None:
        rows = self._write_quarantine(file)
        match self._options.after:
            case "keep":
                self._write_receipt(file, rows, "It stays in its folder.")
            case "archive":
                self._archive(
                    file.name,
                    self._archive_folder(file.acknowledgement.ended),
                    file.identity,
                    file.sha256,
                    self._receipt_of(file, rows) if self._options.receipt else None,
                )
            case "delete":
                self._write_receipt(file, rows, "It is deleted.")
                self._store.delete(self._folder.path(file.name), file.identity)

    def dispose_companion(self, name: str, ended: float) -> None:
        """See `Disposer.dispose_companion`."""
        path = self._folder.path(name)
        try:
            identity = self._store.status(path)
            if self._options.after == "archive":
                self._archive(name, self._archive_folder(ended), identity, "", None)
            elif self._options.after == "delete":
                self._store.delete(path, identity)
        except FileNotFoundError:
            return

    def move_to_failed(self, name: str, identity: Identity, reason: str) -> bool:
        """See `Disposer.move_to_failed`."""
        if self._places.failed is None or self._options.after == "keep" or self._readers_of(name):
            return False
        self._check_writable(join(self._places.failed, name))
        note = _Note(lambda archived: archived + REASON_SUFFIX, lambda _: describe_failure(name, reason))
        return self._archive(name, self._places.failed, identity, "", note)

    def find_archived(self, name: str, size: int, sha256: str) -> Iterator[str]:
        """Yield the paths of archived files with this name and content. Folders by date (archive_folders) are not searched."""
        if self._places.archive is None:
            return
        for path in _candidates(self._places.archive, name):
            try:
                identity = self._store.status(path)
            except FileNotFoundError:
                return
            if identity.size == size and self._has_content(path, identity, sha256):
                yield path

    # ------------------------------------------------------------------------------------------------------- archive

    def _archive(self, name: str, folder: str, identity: Identity, sha256: str, note: _Note | None) -> bool:
        """Move a file to ``name`` or a free variant in ``folder``. Return True if its content is now in ``folder``."""
        path, archived = self._folder.path(name), ""

        def is_copy(copy: str, existing: Identity) -> bool:
            return (
                self._store.copies
                and existing.size == identity.size
                and (note is None or self._reads(note.path_for(copy)) == note.content_for(copy))
                and self._is_copy(copy, existing, identity, sha256)
            )

        for _ in range(_DISPLACED):
            archived, is_copied = self._find_name(folder, name, is_copy)
            if is_copied:
                self._store.delete(path, identity)
                return True
            if note is not None:
                self._store.write(note.path_for(archived), note.content_for(archived))
            is_taken = False
            try:
                is_moved = self._store.move(path, archived, identity, sha256)
            except (FileExistsError, FileNotFoundError) as error:
                # Another program created a file at the target, or removed this file.
                is_moved, is_taken = False, isinstance(error, FileExistsError)
            if not is_moved and note is not None:
                self._store.delete(note.path_for(archived), None)
            if not is_taken:
                return is_moved
        raise SourceUnavailable(
            f"{self._address.display(archived)} can't be used: other programs create files with this name and its variants."
        )

    def _find_name(self, folder: str, name: str, is_copy: Callable[[str, Identity], bool]) -> tuple[str, bool]:
        """Return (path, False) for a free variant of ``name``, or (path, True) for a variant that ``is_copy`` recognises."""
        for path in _candidates(folder, name):
            try:
                existing = self._store.status(path)
            except FileNotFoundError:
                return path, False
            if is_copy(path, existing):
                return path, True
        raise SourceUnavailable(f"{self._address.display(folder)} holds {_VARIANTS} files like {name}: move some away.")

    def _is_copy(self, path: str, existing: Identity, identity: Identity, sha256: str) -> bool:
        if existing.version and existing.version == identity.version:
            return True
        return bool(sha256) and self._has_content(path, existing, sha256)

    def _has_content(self, path: str, identity: Identity, sha256: str) -> bool:
        with temporary_file() as copy:
            self._store.fetch(path, cast("BinaryIO", copy), expected=identity)
            copy.seek(0)
            return hashlib.file_digest(copy, "sha256").hexdigest() == sha256

    def _reads(self, path: str) -> bytes | None:
        content = io.BytesIO()
        try:
            self._store.fetch(path, content)
        except (FileNotFoundError, RemoteChanged):
            return None
        return content.getvalue()

    def _archive_folder(self, ended: float) -> str:
        if self._places.archive is None:
            raise SourceBroken("after: archive needs a folder: set archive.")
        date = self._options.archive_folder(ended)
        return join(self._places.archive, date) if date else self._places.archive

    # ------------------------------------------------------------------------------------------------------ reports

    def _receipt_of(self, file: AcknowledgedFile, rows: _RejectedRows) -> _Note:
        def path_for(archived: str) -> str:
            if self._places.receipts is not None and self._places.archive is not None:
                below = PurePosixPath(archived).relative_to(self._places.archive)
                archived = join(self._places.receipts, str(below))
            return archived + receipts.SUFFIX

        def content_for(archived: str) -> bytes:
            return self._receipt(file, rows, f"It is archived as {self._address.display(archived)}.")

        return _Note(path_for, content_for)

    def _write_receipt(self, file: AcknowledgedFile, rows: _RejectedRows, disposition: str) -> None:
        if self._places.receipts is not None:
            name = shorten_name(PurePosixPath(file.name))
            path = join(self._places.receipts, str(name) + receipts.SUFFIX)
            self._store.write(path, self._receipt(file, rows, disposition))

    def _receipt(self, file: AcknowledgedFile, rows: _RejectedRows, disposition: str) -> bytes:
        return receipts.build_receipt(file, disposition=disposition, quarantine=rows.address, remark=rows.remark)

    def _write_quarantine(self, file: AcknowledgedFile) -> _RejectedRows:
        """Write the rejected rows to a local file, as for a folder on disk, and copy this file to the server."""
        none = _RejectedRows()
        if self._places.quarantine is None or not file.acknowledgement.rejected:
            return none
        source = RemoteDropFile(self._folder, file.name)
        try:
            if not source.status().has_same_content(file.identity):
                return none  # the file was replaced, and its present content was not read
            opened = source.open()
        except FileNotFoundError:
            return none
        with opened.file, tempfile.TemporaryDirectory(prefix="ingestd-") as local:
            written = write_quarantine(
                QuarantineSource(
                    file=cast("BinaryIO", opened.file),
                    name=file.name,
                    sha256=file.sha256,
                    file_format=self._format_for(file.name),
                    configured=self._options.format,
                ),
                file.acknowledgement,
                RootedPath(Path(local)),
            )
            if written.path is None:
                return _RejectedRows("", written.remark)
            with os.fdopen(written.path.open_file(), "rb") as rows:
                address = self._publish(written.path.name, rows.read(), self._places.quarantine)
        return _RejectedRows(address, written.remark)

    def _publish(self, name: str, data: bytes, folder: str) -> str:
        """Write a file under a free name, or use an equal file that was written before a crash. Return its address."""
        self._check_writable(join(folder, name))
        path, is_written = self._find_name(
            folder, name, lambda path, existing: existing.size == len(data) and self._reads(path) == data
        )
        if not is_written:
            self._store.write(path, data)
        return self._address.display(path)


def _place(below: Callable[[str], str], configured: str | None, archive: str | None, name: str) -> str | None:
    if configured is not None:
        return below(configured)
    return join(archive, name) if archive is not None else None


def _candidates(folder: str, name: str) -> Iterator[str]:
    """Yield the path of ``name`` in ``folder``, then the paths of its numbered variants."""
    target = PurePosixPath(join(folder, str(shorten_name(PurePosixPath(name)))))
    yield str(target)
    for number in range(2, _VARIANTS):
        yield str(target.with_name(f"{target.stem}~{number}{target.suffix}"))

"""The archiver: archives or deletes acknowledged files, writes receipts and rejected rows, and moves unreadable files.

The order of the steps permits a crash at any moment. The rejected rows are written first, because they are read from the file.
Then the receipt is written. The file is moved last. After a crash before the move, all steps are repeated, with the same names
and the same content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from connectors.beneath import NotRegularFile, RootedPath, path_below
from connectors.directory import disposal
from connectors.directory.disposal import Move, Note
from connectors.directory.options import DirectoryOptions
from connectors.directory.other_pipelines import check_removable, check_writable
from connectors.files import receipt as receipts
from connectors.files.durable_write import Access, shorten_name, write
from connectors.files.file_batches import open_file
from connectors.files.identity import Identity
from connectors.files.quarantine import QuarantineFile, write_quarantine
from connectors.files.receipt import AcknowledgedFile
from connectors.files.rejected_rows import QuarantineSource
from connectors.filesystem import describe_error, translate_errors
from connectors.formats import Format
from ingestd.sdk import SourceBroken, SourceError, SourceUnavailable

REASON_SUFFIX = ".reason.txt"


class Archiver:
    """Archives or deletes files of a drop folder, as the options say. Relative paths in the options start at ``base``."""

    def __init__(
        self,
        options: DirectoryOptions,
        base: Path,
        *,
        format_for: Callable[[str], Format],
        other_readers: Callable[[RootedPath], Collection[str]],
    ) -> None:
        root = base / options.path
        archive = path_below(base / options.archive, root) if options.archive is not None else None
        parent = archive if options.after == "archive" else None

        def output_folder(configured: Path | None, name: str) -> RootedPath | None:
            if configured is not None:
                return path_below(base / configured, root)
            return parent / name if parent is not None else None

        self._options = options
        self._base = base
        self._root = root
        self._format_for = format_for
        self._other_readers = other_readers
        self.archive = archive
        self.quarantine = output_folder(options.quarantine, "rejected")
        self.failed = output_folder(options.failed, "failed")
        has_receipts = options.receipt and options.receipts is not None
        self.receipts = output_folder(options.receipts, "") if has_receipts else None

    @property
    def is_the_folder(self) -> bool:
        """True if the archive is the drop folder itself."""
        return self.archive == RootedPath(self._root)

    @property
    def all_folders(self) -> tuple[RootedPath, ...]:
        """Every folder to which files are written. Scans skip these folders."""
        return (*([self.archive] if self.archive is not None else []), *self.output_folders.values())

    @property
    def output_folders(self) -> dict[str, RootedPath]:
        """The folders to which files are written, except the archive. The keys are the names of the settings."""
        found = {"quarantine": self.quarantine, "failed": self.failed, "receipts": self.receipts}
        return {name: folder for name, folder in found.items() if folder is not None}

    def check_removable(self, name: str, ended: float) -> None:
        """See `Disposer.check_removable`. This method also raises if another pipeline reads the file."""
        path = RootedPath(self._root, name)
        check_removable(path, self.readers_of(name))
        if self._options.after == "archive":
            self._check_writable(self._archive_folder(ended) / name)
        try:
            with path.parent.open_folder() as folder:
                is_writable = folder.is_writable
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be moved: {describe_error(error)}") from error
        if not is_writable:
            raise SourceUnavailable(
                f"{path} can't be moved: its folder can't be written to. The file was read and is not read"
                " again; allow writing to"
                " the folder, or set after: keep."
            )

    def readers_of(self, name: str) -> Collection[str]:
        """Return the names of the other pipelines that read the file ``name``."""
        return self._other_readers(RootedPath(self._root, name))

    def _check_writable(self, path: RootedPath) -> None:
        check_writable(path, self._other_readers(path))

    def dispose(self, files: Sequence[AcknowledgedFile]) -> list[SourceError | None]:
        """See `Disposer.dispose`. One call of `archive_together` archives all files."""
        failures: list[SourceError | None] = [None] * len(files)
        moves: dict[int, Move] = {}
        for number, file in enumerate(files):
            try:
                with translate_errors(self._root / file.name):
                    rows = self._write_quarantine(file)
                    match self._options.after:
                        case "keep":
                            self._write_receipt(file, rows, "It stays in its folder.")
                        case "archive":
                            moves[number] = self._move(file, rows)
                        case "delete":
                            self._write_receipt(file, rows, "It is deleted.")
                            disposal.delete(RootedPath(self._root, file.name), identity=file.identity)
            except SourceError as error:
                failures[number] = error
        for number, result in zip(moves, disposal.archive_together([*moves.values()]), strict=True):
            if isinstance(result, SourceUnavailable):
                failures[number] = result
        return failures

    def dispose_companion(self, name: str, ended: float) -> None:
        """See `Disposer.dispose_companion`."""
        path = RootedPath(self._root, name)
        try:
            with os.fdopen(path.open_file(), "rb") as file:
                identity = Identity.from_status(os.fstat(file.fileno()))
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except (FileNotFoundError, NotRegularFile):
            return
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {describe_error(error)}") from error
        if self._options.after == "archive":
            disposal.archive(path, self._archive_folder(ended), name, identity=identity, sha256=sha256)
        elif self._options.after == "delete":
            disposal.delete(path, identity=identity)

    def move_to_failed(self, name: str, identity: Identity, reason: str) -> bool:
        """See `Disposer.move_to_failed`."""
        if self.failed is None or self._options.after == "keep" or self.readers_of(name):
            return False
        self._check_writable(self.failed / name)
        path = RootedPath(self._root, name)
        try:
            with os.fdopen(path.open_file(), "rb") as file:
                if not Identity.from_status(os.fstat(file.fileno())).has_same_content(identity):
                    return False
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except (FileNotFoundError, NotRegularFile):
            return False
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {describe_error(error)}") from error
        note = Note(
            path_for=lambda archived: archived.with_base(archived.base + REASON_SUFFIX),
            content_for=lambda _: describe_failure(name, reason),
        )
        return disposal.archive(path, self.failed, name, identity=identity, sha256=sha256, note=note)

    def _move(self, file: AcknowledgedFile, rows: QuarantineFile | None) -> Move:
        def content(archived: RootedPath) -> bytes:
            return self._receipt(file, rows, f"It is archived as {self._display_path(archived.path)}.")

        note = Note(path_for=self._receipt_path, content_for=content) if self._options.receipt else None
        return Move(
            path=RootedPath(self._root, file.name),
            folder=self._archive_folder(file.acknowledgement.ended),
            name=file.name,
            identity=file.identity,
            sha256=file.sha256,
            note=note,
        )

    def _source(self, name: str) -> RootedPath:
        """Return the path of a file. With ``after: keep``, symbolic links inside the folder are followed."""
        path = RootedPath(self._root, name)
        return path.resolve() if self._options.after == "keep" else path

    def _archive_folder(self, ended: float) -> RootedPath:
        if self.archive is None:
            raise SourceBroken("after: archive needs a folder: set archive.")
        return self.archive / self._options.archive_folder(ended)

    def _receipt_path(self, archived: RootedPath) -> RootedPath:
        if self.receipts is not None and self.archive is not None:
            archived = self.receipts / archived.name.removeprefix(self.archive.name).lstrip("/")
        return archived.with_base(archived.base + receipts.SUFFIX)

    def _write_receipt(self, file: AcknowledgedFile, rows: QuarantineFile | None, disposition: str) -> None:
        if self.receipts is None:
            return
        name = shorten_name(PurePosixPath(file.name))
        path = self.receipts / name.with_name(name.name + receipts.SUFFIX).as_posix()
        key = f"receipt {os.uname().nodename} {self._root} {file.name} {file.identity} {file.acknowledgement.run}"
        try:
            content = self._receipt(file, rows, disposition)
            write(path, [content], key=key, access=self._access(file.name))
        except OSError as error:
            raise SourceUnavailable(f"The receipt {path} can't be written: {describe_error(error)}") from error

    def _receipt(self, file: AcknowledgedFile, rows: QuarantineFile | None, disposition: str) -> bytes:
        quarantine = self._display_path(rows.path.path) if rows is not None and rows.path is not None else ""
        remark = rows.remark if rows is not None else ""
        return receipts.build_receipt(file, disposition=disposition, quarantine=quarantine, remark=remark)

    def _access(self, name: str) -> Access:
        """Return the permissions of a file; if the file no longer exists, permissions for this account only."""
        try:
            return Access.from_status(self._source(name).status())
        except FileNotFoundError:
            return Access(0o600, os.getegid())

    def _write_quarantine(self, file: AcknowledgedFile) -> QuarantineFile | None:
        if self.quarantine is None or not file.acknowledgement.rejected:
            return None
        try:
            opened = open_file(self._source(file.name), file.name)
        except FileNotFoundError:
            return None
        with opened.file:
            if not opened.identity.has_same_content(file.identity):
                return None  # the file was replaced, and its present content was not read
            source = QuarantineSource(
                file=cast("BinaryIO", opened.file),
                name=file.name,
                sha256=file.sha256,
                file_format=self._format_for(file.name),
                configured=self._options.format,
            )
            try:
                return write_quarantine(source, file.acknowledgement, self.quarantine, self._check_writable)
            except OSError as error:
                raise SourceUnavailable(
                    f"The rejected rows of {self._root / file.name} can't be written into {self.quarantine}:"
                    f" {describe_error(error)} The file stays until that is possible."
                ) from error

    def _display_path(self, path: Path) -> str:
        return str(path.relative_to(self._base) if path.is_relative_to(self._base) else path)


def describe_failure(name: str, reason: str) -> bytes:
    """Return the content of the text file that is stored next to an unreadable file in the failed folder."""
    text = f"{name} could not be read.\n\n{reason}\n\nCorrect the file and drop it again; it may have the same name.\n"
    return text.encode("utf-8", "backslashreplace")

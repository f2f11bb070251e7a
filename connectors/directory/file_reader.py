"""The file reader: one file of a drop folder as batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from connectors.directory.folder_state import FolderState
from connectors.files.file_batches import NoticeLog, OpenFile, read_batches, unchanged_batch
from connectors.files.resubmission import is_resubmitted
from connectors.filesystem import describe_error
from connectors.formats import Format
from ingestd.sdk import Batch, Cursor, LoadSections, SourceBroken, SourceUnavailable


class FileReader:
    """Reads files, and records in the folder's state which were read or are broken."""

    def __init__(self, state: FolderState, *, format_for: Callable[[str], Format], notices: NoticeLog) -> None:
        self._state = state
        self._format_for = format_for
        self._notices = notices

    def read(self, name: str, cursor: Cursor | None, sections: LoadSections | None = None) -> Iterator[Batch]:
        """Yield the whole file, except known ``sections``; see `connectors.files.file_batches.read_batches`.

        Yields nothing if the file did not change since the cursor was made. Yields nothing if the file changed since it
        was found stable, because it must become stable again. Yields one ``unchanged`` batch if the file was written again
        with the content that the cursor describes.

        Raises:
            SourceUnavailable: the file can't be read now, or changed meanwhile.
            SourceBroken: the file can't be read as it is.
        """
        known = self._state.read_files
        file = self._state.drop.file(name)
        try:
            identity = file.status()
            if self._state.was_read(name, identity, cursor):
                known.mark_read(name, identity)
                return
            opened = file.open()
        except FileNotFoundError:
            self._note_missed(name, "It is listed, and there is no such file when it is opened.")
            return  # removed since the scan, so nothing was read
        except OSError as error:
            raise SourceUnavailable(f"{file.path} can't be read: {describe_error(error)}") from error
        except SourceUnavailable as error:
            self._note_missed(name, str(error))
            raise
        except SourceBroken as error:
            known.mark_broken(name, self._state.found.files.get(name), str(error))
            raise
        with opened.file:
            if not self._state.is_as_scanned(opened, identity):
                self._note_missed(
                    name, "When it is opened, it has another size, time or version than in the folder's list."
                )
                return
            known.begin(name, opened.identity)
            try:
                self._check_readable(opened)
                yield from self._read(opened, cursor, sections)
                known.end(name, opened.identity)
            except SourceBroken as error:
                known.mark_broken(name, opened.identity, str(error))
                raise
            except OSError as error:
                raise SourceUnavailable(f"{file.path} can't be read: {describe_error(error)}") from error

    def _note_missed(self, name: str, reason: str) -> None:
        self._state.read_files.mark_missed(name, self._state.context.elapsed(), reason)

    def _check_readable(self, opened: OpenFile) -> None:
        if not opened.identity.size:
            raise SourceBroken(
                f"{opened.name} is empty and has been for {self._state.options.empty_seconds:g} seconds (empty_seconds). Drop"
                " it again with its content, or remove it."
            )
        if reason := self._state.take_rejection(opened.name):
            raise SourceBroken(reason)

    def _read(self, opened: OpenFile, cursor: Cursor | None, sections: LoadSections | None) -> Iterator[Batch]:
        sha256, is_known = opened.compare_content(cursor)
        if not opened.identity.is_proof:
            self._state.read_files.remember_content(opened.name, sha256)
        if is_known:
            yield unchanged_batch(opened, sha256, cursor)
            return
        trailer = self._state.options.trailer if not is_resubmitted(opened.name) else None
        end = trailer.find_start(cast("BinaryIO", opened.file)) if trailer is not None else None
        try:
            file_format = self._format_for(opened.name)
            yield from read_batches(opened, sha256, file_format, notices=self._notices, end=end, known=sections)
        except SourceBroken:
            self._state.read_files.mark_unreadable(opened.name, opened.identity)
            raise

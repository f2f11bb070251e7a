"""The base class of file sources: it reads files that are ready, and keeps, archives or deletes acknowledged files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from connectors.directory.acknowledgement import Acknowledger
from connectors.directory.checks import describe_skipped
from connectors.directory.drop_folder import Disposer, DropFolder
from connectors.directory.drop_options import DropOptions
from connectors.directory.explain import explain_file, explain_waiting
from connectors.directory.folder_state import FolderState
from connectors.files.file_batches import (
    NoticeLog,
    OpenFile,
    read_batches,
    read_open_file,
    read_sample_file,
    unchanged_batch,
)
from connectors.files.resubmission import format_for, is_resubmitted
from connectors.filesystem import describe_error, translate_errors
from connectors.formats import Format, format_settings
from ingestd.sdk import (
    Acknowledgement,
    Batch,
    Connector,
    Cursor,
    LoadSections,
    Partition,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    WaitingFile,
    WaitingReason,
    counted,
)
from ingestd.sdk.formats.parser_process import Parsers

_SMALL_BYTES = 64 << 10
"""Files of at most this size are stored in one transaction with other small files."""


class FileSource(Connector):
    """Files in a folder. Each file is a partition, named by its path below the folder. A file is always read as a whole.

    ``open_places`` returns the folder, and the object that archives or deletes the files.
    """

    options: DropOptions

    def __init__(
        self,
        options: DropOptions,
        context: SourceContext,
        open_places: Callable[[], tuple[DropFolder, Disposer]],
        *,
        trusts_status: bool = True,
    ) -> None:
        super().__init__(options, context)
        self._parsers, self._row_parsers = Parsers(), Parsers()
        drop, self._disposer = open_places()
        self._state = FolderState(options, drop, self._format_for, context=context, trusts_status=trusts_status)
        self._notices = NoticeLog(context.log)
        self._acknowledger = Acknowledger(self._state, self._disposer)

    def _format_for(self, name: str) -> Format:
        return format_for(name, self.options.format, member=self.options.member).with_parsers(self._parsers)

    def _format_of_rejected(self, name: str) -> Format:
        """Return the format that reads the rejected rows of an acknowledged file. It also works after `interrupt`."""
        return self._format_for(name).with_parsers(self._row_parsers)

    @property
    def record_settings(self) -> Mapping[str, Any]:
        """The settings that decide how a file is read: the format, the members of a packed file, and the trailer."""
        settings = format_settings(self.options.format, member=self.options.member)
        trailer = self.options.trailer
        return settings if trailer is None else {**settings, "trailer": trailer.pattern}

    def partitions(self) -> Iterable[Partition]:
        """Yield the partitions of files that are ready and may have new content, the oldest file first."""
        with translate_errors(self._state.folder):
            names = self._update()
        found = self._state.found.files
        yield from (Partition(name=name, small=name in found and found[name].size <= _SMALL_BYTES) for name in names)
        if self._state.found.away:  # a part of the folder can't be read; the files of the other parts were yielded
            raise SourceUnavailable(self._state.found.away)

    def _update(self) -> list[str]:
        """Scan the folder and return the names of the files to read."""
        return self._state.update()

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """Yield the whole file.

        Yield nothing if the file has not changed since ``cursor``. Yield nothing if the file changed after the scan that
        found it stable, because it must become stable again. Yield one ``unchanged`` batch if the file was written again
        with the content that the cursor describes.

        Raises:
            SourceUnavailable: the file can't be read now, or changed during the reading.
            SourceBroken: the file can't be read in its present state.
        """
        return self._read(partition.name, cursor, None)

    def read_sections(self, partition: Partition, cursor: Cursor | None, known: LoadSections) -> Iterator[Batch]:
        """Yield the batches of `read` without the ``known`` sections; see `connectors.files.file_batches.read_batches`."""
        return self._read(partition.name, cursor, known)

    def _read(self, name: str, cursor: Cursor | None, sections: LoadSections | None) -> Iterator[Batch]:
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
                yield from self._read_open(opened, cursor, sections)
                known.end(name, opened.identity)
            except SourceBroken as error:
                known.mark_broken(name, opened.identity, str(error))
                raise
            except OSError as error:
                raise SourceUnavailable(f"{file.path} can't be read: {describe_error(error)}") from error

    def _note_missed(self, name: str, reason: str) -> None:
        self._state.read_files.mark_missed(name, self.context.elapsed(), reason)

    def _check_readable(self, opened: OpenFile) -> None:
        if not opened.identity.size:
            raise SourceBroken(
                f"{opened.name} is empty and has been for {self.options.empty_seconds:g} seconds (empty_seconds). Drop"
                " it again with its content, or remove it."
            )
        if reason := self._state.take_rejection(opened.name):
            raise SourceBroken(reason)

    def _read_open(self, opened: OpenFile, cursor: Cursor | None, sections: LoadSections | None) -> Iterator[Batch]:
        sha256, is_known = opened.compare_content(cursor)
        if not opened.identity.is_proof:
            self._state.read_files.remember_content(opened.name, sha256)
        if is_known:
            yield unchanged_batch(opened, sha256, cursor)
            return
        end = None if is_resubmitted(opened.name) else self._find_end(cast("BinaryIO", opened.file))
        try:
            file_format = self._format_for(opened.name)
            yield from read_batches(opened, sha256, file_format, notices=self._notices, end=end, known=sections)
        except SourceBroken:
            self._state.read_files.mark_unreadable(opened.name, opened.identity)
            raise

    def acknowledge(self, partition: Partition, cursor: Cursor, acknowledgement: Acknowledgement) -> None:
        """Keep, archive or delete the file; see `connectors.directory.acknowledgement.Acknowledger.acknowledge`.

        Raises:
            AcknowledgeLater: another file of the group is not acknowledged yet, or a grace period has not passed.
        """
        (failure,) = self.acknowledge_together([(partition, cursor, acknowledgement)])
        if failure is not None:
            raise failure

    def acknowledge_together(
        self, partitions: Sequence[tuple[Partition, Cursor, Acknowledgement]]
    ) -> list[Exception | None]:
        """Acknowledge several files. Return the error or None for each file.

        See `connectors.directory.acknowledgement.Acknowledger.acknowledge`.
        """
        # A cursor with an offset is in the middle of a file: the file was not read to its end, and is not acknowledged.
        whole = {number: item for number, item in enumerate(partitions) if "offset" not in item[1]}
        if not whole:
            return [None] * len(partitions)
        try:
            with translate_errors(self._state.folder):
                self._state.drop.check()  # otherwise a file on an unmounted share would count as removed
                failures = self._acknowledger.acknowledge([(item[0].name, *item[1:]) for item in whole.values()])
                self._state.drop.check()  # files can also be missing because the share was unmounted during the call
        except SourceUnavailable as error:
            failures = [error] * len(whole)
        by_number = dict(zip(whole, failures, strict=True))
        return [by_number.get(number) for number in range(len(partitions))]

    @property
    def moves_failed(self) -> bool:
        """True if a file that can't be read may move to the failed folder."""
        return self.options.after != "keep"

    def failed(self, partition: Partition, reason: str) -> None:
        """Move a file with unreadable content to the failed folder, if there is one.

        A file stays if only its mapping fails, because then the mapping is often wrong. A file of a group stays, because
        without this file the group would wait forever. A file also stays if a readiness rule rejects the file.
        """
        name = partition.name
        known = self._state.read_files
        known.confirm_broken(name, reason)
        identity = known.take_unreadable(name)
        if identity is None or self._state.find_group(name) is not None:
            return
        try:
            with translate_errors(self._state.folder):
                if self._disposer.move_to_failed(name, identity, reason):
                    known.mark_removed(name)
        except SourceUnavailable:
            known.clear_broken(name)  # the file is read again, so that its move is tried again
            raise

    def read_sample(self, path: Path) -> Iterator[Batch]:
        """Yield all records of a file, read with the source's format, for `ingestd test`."""
        return read_sample_file(path, self._format_for(path.name), notices=self._notices, find_end=self._find_end)

    def _read_copy(self, opened: OpenFile) -> Iterator[Batch]:
        return read_open_file(opened, self._format_for(opened.name), notices=self._notices, find_end=self._find_end)

    def _find_end(self, file: BinaryIO) -> int | None:
        trailer = self.options.trailer
        return trailer.find_start(file) if trailer is not None else None

    def reset(self) -> None:
        """Forget which files were read or were unreadable, so that every file is read again."""
        self._state.read_files.forget()

    def interrupt(self) -> None:
        """Stop the child process that parses a file for a reading. Files can still be acknowledged."""
        self._parsers.interrupt()

    def close(self) -> None:
        """Stop all child processes that parse files."""
        self._parsers.interrupt()
        self._row_parsers.interrupt()

    def waiting(self) -> float | None:
        """Return the seconds until the next file may be stable; None if every file is stable.

        Files that wait for another reason are not considered: events and scans find out when such a wait ends.
        """
        return self._state.stability.next_seconds(self.context.elapsed())

    def notices(self) -> Iterator[str]:
        """Yield sentences about files that the last scan skipped, and about files that could not be opened."""
        found = self._state.found
        if found.unmatched:
            yield found.unmatched_sentence
        if found.skipped:
            yield describe_skipped(found.skipped)
        if missed := self._state.read_files.missed(self.context.elapsed()):
            sentence, *others = missed.values()
            yield f"{sentence} The same holds for {counted(len(others), 'more file')}." if others else sentence

    def count_waiting(self) -> Mapping[WaitingReason, int]:
        """Return the number of files that the last scan did not select for reading, by reason."""
        return {reason: len(names) for reason, names in self._state.waiting.items()}

    def list_waiting(self, limit: int) -> Sequence[WaitingFile]:
        """Return at most ``limit`` waiting files, each with its reason."""
        return explain_waiting(self._state, limit)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Return why a file is not read in its present state; None if it was read, or does not exist."""
        try:
            with translate_errors(self._state.folder):
                return explain_file(self._state, name, cursor)
        except SourceUnavailable as error:
            return str(error)

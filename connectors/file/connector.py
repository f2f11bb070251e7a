"""The file connector: reads one whole file after each change, once the file is stable."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from connectors.beneath import LeadsOutside, RootedPath
from connectors.file.checks import describe_office_lock, run_checks
from connectors.file.options import FileOptions
from connectors.files.file_batches import (
    NoticeLog,
    OpenFile,
    open_file,
    read_batches,
    read_sample_file,
    unchanged_batch,
)
from connectors.files.identity import Identity
from connectors.files.stability import StabilityTracker
from connectors.filesystem import describe_error, real_path
from connectors.folder_watch import FolderWatch
from connectors.formats import Format, format_settings, resolve_format
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    FileClaim,
    LoadSections,
    Partition,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
)
from ingestd.sdk.formats.parser_process import Parsers


class FileConnector(Connector):
    """One file, which is one partition. Each reading covers the whole file."""

    Options: ClassVar[type[FileOptions]] = FileOptions
    options: FileOptions

    def __init__(self, options: FileOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._path = context.base / options.path
        self._name = self._path.name
        self._parsers = Parsers()
        self._notices = NoticeLog(context.log)
        self._stability = StabilityTracker(options.settle_seconds)
        self._missing_since: float | None = None
        self._seen: Identity | None = None
        self._broken: tuple[Identity, str] | None = None
        self._last_read: Identity | None = None
        self._watch = FolderWatch(
            self._path.parent, mode=options.watch, report=lambda sentence: context.log(f"{sentence}.")
        )

    @classmethod
    def claims(cls, options: FileOptions, base: Path) -> Sequence[FileClaim]:
        """Return the configured path, and the target of the link if the path is a link."""
        named = base / options.path
        spelled = {os.path.realpath(named), f"{os.path.realpath(named.parent)}/{named.name}"}
        return [
            FileClaim(folder=str(Path(path).parent), patterns=(glob.escape(Path(path).name),), ignore_case=False)
            for path in sorted(spelled)
        ]

    @property
    def record_settings(self) -> Mapping[str, Any]:
        """The format, and the glob of the members of a packed file that are read."""
        return format_settings(self.options.format, member=self.options.member)

    def partitions(self) -> Iterable[Partition]:
        """Return the file's partition if the file is stable, unless reading its present state has already failed.

        Programs save a file by writing another file and renaming it. A file that is missing only for a moment is no error.

        Raises:
            SourceUnavailable: the file is missing, or its status can't be read.
        """
        self._watch.rearm()
        elapsed = self.context.elapsed()
        seen, self._seen = self._seen, self._read_identity(elapsed)
        if self._seen is None:
            if seen is None and not self._is_being_saved(elapsed):
                raise SourceUnavailable(self._describe_missing())
            return []
        if self._name not in self._stability.update({self._name: self._seen}, self.context.now(), elapsed=elapsed):
            return []
        if self._broken is not None and self._broken[0] == self._seen:
            return []
        return [Partition(name=self._name, deletes=self.options.deletes)]

    def _place(self) -> RootedPath:
        """Return the path of the file. If it is a link, its target must be in the folder."""
        try:
            return RootedPath(self._path.parent, self._name).resolve()
        except LeadsOutside as error:
            raise SourceUnavailable(
                f"{self._path} is a link that leads out of its folder, which is not followed. Set path to the file to which it"
                " leads."
            ) from error

    def _identity(self) -> Identity:
        return Identity.from_status(self._place().status())

    def _read_identity(self, elapsed: float) -> Identity | None:
        try:
            identity = self._identity()
        except FileNotFoundError:
            if self._seen is not None:
                self._missing_since = elapsed
            return None
        except OSError as error:
            raise SourceUnavailable(f"{self._path} can't be examined: {describe_error(error)}") from error
        self._missing_since = None
        return identity

    def _is_being_saved(self, elapsed: float) -> bool:
        """Return True if the file existed a moment ago."""
        return self._missing_since is not None and elapsed - self._missing_since < self.options.settle_seconds

    def _describe_missing(self) -> str:
        if os.path.isdir(self._path.parent):  # noqa: PTH112 - raises nothing
            what = "does not exist."
        else:
            what = "does not exist, nor does its folder: is the share mounted?"
        return f"{self._path} {what} Nothing that came from it is removed. Put it back, or correct the setting path."

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """Yield the batches of the whole file.

        Yields nothing if the file did not change since the cursor was made. Yields nothing if the file changed since it
        was found stable, because it must become stable again. Yields one ``unchanged`` batch if the file was written again
        with the content that the cursor describes.
        """
        del partition  # a file has only one partition
        return self._read_once(cursor, None)

    def read_sections(self, partition: Partition, cursor: Cursor | None, known: LoadSections) -> Iterator[Batch]:
        """Yield the batches of `read` without known sections; see `connectors.files.file_batches.read_batches`."""
        del partition  # a file has only one partition
        return self._read_once(cursor, known)

    def _read_once(self, cursor: Cursor | None, known: LoadSections | None) -> Iterator[Batch]:
        try:
            place = self._place()
            listed = Identity.from_status(place.status())
            if listed.matches_cursor(cursor) and listed.is_proof:
                return
            opened = open_file(place, self._name)
        except FileNotFoundError:
            return  # the next check finds out whether the file was replaced or removed
        except OSError as error:
            raise SourceUnavailable(f"{self._path} can't be examined: {describe_error(error)}") from error
        except SourceBroken as error:
            raise SourceUnavailable(
                f"{error} If another program locks it, it is read once that program releases it."
            ) from error
        with opened.file:
            if not opened.identity.has_same_content(self._seen or listed):
                return
            self._last_read = opened.identity
            try:
                yield from self._read(opened, cursor, known)
            except SourceBroken as error:
                self._broken = (opened.identity, str(error))
                raise
            except OSError as error:
                raise SourceUnavailable(f"{self._path} can't be read: {describe_error(error)}") from error

    def _read(self, opened: OpenFile, cursor: Cursor | None, known: LoadSections | None) -> Iterator[Batch]:
        if not opened.identity.size:
            raise SourceBroken(
                f"{self._name} is empty. Nothing that came from it is removed. Save it again with its content."
            )
        sha256, is_known = opened.compare_content(cursor)
        if is_known and opened.identity.matches_cursor(cursor):
            return
        if is_known:
            yield unchanged_batch(opened, sha256, cursor)
            return
        rows = 0
        for batch in read_batches(opened, sha256, self._resolve_format(), notices=self._notices, known=known):
            rows += batch.record_count
            if batch.last and not rows and self.options.deletes == "remove":
                raise SourceBroken(
                    f"{self._name} has no rows, so every entry that came from it would be removed (deletes: remove). It is"
                    " rejected for safety. Save it again with its rows. To remove every entry, delete the entries of the"
                    " pipeline in the workspace, or leave one row."
                )
            yield batch

    def read_sample(self, path: Path) -> Iterator[Batch]:
        """Yield a whole file with the source's format, for `ingestd test`."""
        return read_sample_file(path, self._resolve_format(path.name), notices=self._notices)

    def _resolve_format(self, name: str | None = None) -> Format:
        return resolve_format(name or self._name, self.options.format, member=self.options.member).with_parsers(
            self._parsers
        )

    def failed(self, partition: Partition, reason: str) -> None:
        """Record that reading or mapping the file failed. It is read again after it changes, or after `reset`."""
        del partition  # a file has only one partition
        if self._last_read is not None:
            self._broken = (self._last_read, reason)

    def reset(self) -> None:
        """Forget that the file could not be read, so that it is read again."""
        self._broken = None

    def interrupt(self) -> None:
        """Stop the child process that parses the file."""
        self._parsers.interrupt()

    def close(self) -> None:
        """Stop the child process that parses the file."""
        self._parsers.interrupt()

    def waiting(self) -> float | None:
        """Return the seconds until the file may be stable, or counts as missing; None if neither is expected."""
        elapsed = self.context.elapsed()
        if self._seen is None:
            since = self._missing_since
            return None if since is None else max(0.0, since + self.options.settle_seconds - elapsed)
        return self._stability.next_seconds(elapsed)

    @property
    def rescan_seconds(self) -> float:
        """The interval in seconds at which the file is checked without an event, because an event can be missed."""
        return self._watch.interval(self.options.poll_seconds, self.options.rescan_seconds)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``wake`` on every event in the file's folder, also when the folder appears or is replaced."""
        return self._watch.listen(wake)

    def verify(self) -> Iterable[Step]:
        """Check whether the file exists and can be read, and whether a user has it open."""
        return run_checks(self._path, self._place, self._resolve_format)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Return why the file is not read in its present state; None if ``cursor`` is from this state."""
        if name != self._name:
            return None
        try:
            identity = self._identity()
        except FileNotFoundError:
            return self._describe_missing()
        except (OSError, SourceUnavailable) as error:
            return (
                f"{self._path} can't be examined: {describe_error(error)}" if isinstance(error, OSError) else str(error)
            )
        if identity.matches_cursor(cursor):
            return None
        broken = self._broken
        if broken is not None and broken[0] == identity:
            return f"{name} can't be read as it is. {broken[1]}"
        left = self._stability.seconds_left(name, self.context.elapsed())
        if left is None:
            reason = f"{name} was saved just now; the next check considers it."
        elif left > 0:
            reason = f"{name} must be unchanged for {left:.1f} more seconds (settle_seconds)."
        else:
            reason = f"{name} is stable: it is read next, or what was read from it is not delivered yet."
        lock = describe_office_lock(self._path)
        return f"{reason} {lock}" if lock else reason

    def locate(self, path: Path) -> str | None:
        """Return the file's name if the path names the file; else None."""
        spelled = {self._path.absolute(), real_path(self._path.parent) / self._name}
        return self._name if spelled & {path, real_path(path.parent) / path.name} else None

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Return the end of a sentence that says whether the file changed since it was read."""
        del name  # a file has only one partition
        try:
            is_same = self._identity().matches_cursor(cursor)
        except (OSError, SourceUnavailable):
            return "the file does not exist any more"
        return "the file is unchanged" if is_same else "the file was saved again after it was read"

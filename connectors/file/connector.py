"""The file connector: a look at one file's status, and a reading of the whole once it stands still."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from connectors.file.checks import steps, who_has_it_open
from connectors.file.options import FileOptions
from connectors.files import Identity, OpenFile, StabilityTracker, batches_of, identity_of, open_file, unchanged
from connectors.files.notices import NoticeLog
from connectors.filesystem import cause, real_path
from connectors.folder_watch import Watching
from connectors.formats import Format, format_of
from connectors.formats.parser_process import Parsers
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    FileClaim,
    Partition,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
)


class FileConnector(Connector):
    """One file, one partition; each reading is its whole truth."""

    Options: ClassVar[type[FileOptions]] = FileOptions
    options: FileOptions

    def __init__(self, options: FileOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._path = context.base / options.path
        self._name = self._path.name
        self._parsers = Parsers()
        self._notices = NoticeLog(context.log)
        self._stillness = StabilityTracker(options.settle_seconds)
        self._gone_since: float | None = None
        self._seen: Identity | None = None
        self._broken: tuple[Identity, str] | None = None
        self._last_read: Identity | None = None
        self._watching = Watching(
            self._path.parent, recursive=False, how=options.watch, tell=lambda text: context.log(f"{text}.")
        )

    @classmethod
    def claims(cls, options: FileOptions, base: Path) -> Sequence[FileClaim]:
        """The file by its name in its folder, and what it leads to if it is a link."""
        named = base / options.path
        spelled = {os.path.realpath(named), f"{os.path.realpath(named.parent)}/{named.name}"}
        return [
            FileClaim(folder=str(Path(path).parent), patterns=(glob.escape(Path(path).name),), ignore_case=False)
            for path in sorted(spelled)
        ]

    def partitions(self) -> Iterable[Partition]:
        """The file, once it stands still; not while it can't be read as it is.

        Programs save by writing another file and giving it the name, so for a moment there may be none. That is waited for.
        """
        self._watching.rearm()
        now = self.context.now()
        seen, self._seen = self._seen, self._look(now)
        if self._seen is None:
            if seen is None and not self._is_between(now):
                raise SourceUnavailable(self._missing())
            return []
        if self._name not in self._stillness.look({self._name: self._seen}, now):
            return []
        if self._broken is not None and self._broken[0] == self._seen:
            return []
        return [Partition(name=self._name, deletes=self.options.deletes)]

    def _look(self, now: float) -> Identity | None:
        try:
            identity = identity_of(self._path.stat())
        except FileNotFoundError:
            if self._seen is not None:
                self._gone_since = now
            return None
        except OSError as error:
            raise SourceUnavailable(f"{self._path} can't be looked at: {cause(error)}") from error
        self._gone_since = None
        return identity

    def _is_between(self, now: float) -> bool:
        """Whether the file was there a moment ago."""
        return self._gone_since is not None and now - self._gone_since < self.options.settle_seconds

    def _missing(self) -> str:
        folder = os.path.isdir(self._path.parent)  # noqa: PTH112 - raises nothing
        what = "is not there" if folder else "is not there, nor is its folder: is the share mounted"
        end = "?" if what.endswith("mounted") else "."
        return f"{self._path} {what}{end} Nothing that came from it is removed. Put it back, or correct path."

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """The whole file; nothing where it is the one of the cursor, ``unchanged`` where only its hash is the cursor's.

        Nothing, too, where it is no longer the file that was seen to stand still: it has to stand still again.
        """
        del partition  # there is one
        try:
            if identity_of(self._path.stat()).is_at(cursor):
                return
            opened = open_file(self._path, self._name)
        except FileNotFoundError:
            return  # the next look tells whether it was replaced or is away
        except OSError as error:
            raise SourceUnavailable(f"{self._path} can't be looked at: {cause(error)}") from error
        except SourceBroken as error:
            raise SourceUnavailable(f"{error} If another program holds it, it is read once that lets go.") from error
        with opened.file:
            if self.options.settle_seconds and not opened.identity.same_content(self._seen):
                return
            self._last_read = opened.identity
            try:
                yield from self._read(opened, cursor)
            except SourceBroken as error:
                self._broken = (opened.identity, str(error))
                raise
            except OSError as error:
                raise SourceUnavailable(f"{self._path} can't be read: {cause(error)}") from error

    def _read(self, opened: OpenFile, cursor: Cursor | None) -> Iterator[Batch]:
        if not opened.identity.size:
            raise SourceBroken(
                f"{self._name} is empty. Nothing that came from it is removed. Save it again with its content."
            )
        sha256, known = opened.content(cursor)
        if known:
            yield unchanged(opened, sha256)
            return
        rows = 0
        for batch in batches_of(opened, sha256, self._form(), notices=self._notices):
            rows += batch.records.height + len(batch.rejects)
            if batch.last and not rows and self.options.deletes == "remove":
                raise SourceBroken(
                    f"{self._name} holds not a single row, so every entry that came from it would be removed (deletes: remove)."
                    " That is not believed. Save it again with its rows; if they are all to go, remove its pipeline's entries"
                    " in the workspace, or leave one row."
                )
            yield batch

    def _form(self) -> Format:
        return format_of(self._name, self.options.format, member=self.options.member).using(self._parsers)

    def failed(self, partition: Partition, reason: str) -> None:
        """Remember that the file can't be read as it is, also where the mapping is what refused it."""
        del partition  # there is one
        if self._last_read is not None:
            self._broken = (self._last_read, reason)

    def again(self) -> None:
        """Take the file for one that may have something to tell."""
        self._broken = None

    def interrupt(self) -> None:
        """End the parsing of the file in a child process."""
        self._parsers.interrupt()

    def close(self) -> None:
        """End the parsing of the file in a child process, should it still be under way."""
        self._parsers.interrupt()

    def waiting(self) -> float | None:
        """Seconds until the file may stand still, or counts as away; None where there is nothing to wait for."""
        now = self.context.now()
        if self._seen is None:
            gone = self._gone_since
            return None if gone is None else max(0.0, gone + self.options.settle_seconds - now)
        return self._stillness.next_seconds(now)

    @property
    def rescan_seconds(self) -> float:
        """How long at the most a missed event goes unnoticed."""
        return self._watching.interval(self.options.poll_seconds, self.options.rescan_seconds)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Wake on every event in the file's folder, also once it appears or comes back."""
        return self._watching.listen(wake)

    def verify(self) -> Iterable[Step]:
        """Whether the file is there and can be read, and whether somebody has it open."""
        return steps(self._path, self._form)

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Why the file is not read as it is now."""
        if name != self._name:
            return None
        try:
            identity = identity_of(self._path.stat())
        except FileNotFoundError:
            return self._missing()
        except OSError as error:
            return f"{self._path} can't be looked at: {cause(error)}"
        if identity.is_at(cursor):
            return None
        broken = self._broken
        if broken is not None and broken[0] == identity:
            return f"{name} can't be read as it is. {broken[1]}"
        left = self._stillness.seconds_left(name, self.context.now())
        if left is None:
            wait = f"{name} was saved just now; it is considered at the next look."
        elif left > 0:
            wait = f"{name} must stand still for {left:.1f} more seconds (settle_seconds)."
        else:
            wait = f"{name} stands still: it is being read, or what was read from it is not settled yet."
        holder = who_has_it_open(self._path)
        return f"{wait} {holder}" if holder else wait

    def locate(self, path: Path) -> str | None:
        """The file's name, where the path is the file's."""
        spelled = {self._path.absolute(), real_path(self._path.parent) / self._name}
        return self._name if spelled & {path, real_path(path.parent) / path.name} else None

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """That it stays; whether it is still as it was read."""
        del name  # there is one
        try:
            same = identity_of(self._path.stat()).is_at(cursor)
        except OSError:
            return "it is not there now"
        return "it stays where it is" if same else "it was saved again since"

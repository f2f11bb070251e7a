"""The directory connector: an event wakes a scan, the scan decides, and a file goes only when all of it is settled."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

from connectors.directory.archiver import Archiver, Disposal
from connectors.directory.checks import refused_sentence, steps
from connectors.directory.explain import Explainer
from connectors.directory.location import locate, whereabouts
from connectors.directory.options import DirectoryOptions
from connectors.directory.read_files import ReadFiles
from connectors.directory.readiness import Readiness
from connectors.directory.readiness.file_groups import Group
from connectors.directory.scan import ScannedFile, Scanner, is_inside, readable_name
from connectors.files.file_batches import OpenFile, batches_of, open_file, unchanged
from connectors.files.identity import Identity, identity_of
from connectors.files.notices import NoticeLog
from connectors.files.resubmission import form_of, origin_name
from connectors.files.stability import StabilityTracker
from connectors.filesystem import cause, reachable, real_path
from connectors.folder_watch import Watching
from connectors.formats import Format
from connectors.formats.parser_process import Parsers
from connectors.mounts import MountGuard
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    FileClaim,
    Partition,
    SettleLater,
    Settlement,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
)

_LOOKS_APART = 400
"""Where events come, looking for missed ones may cost a quarter of a percent of a processor, however large the folder is."""
_POLLS_APART = 20
"""Where none come, looking may cost five percent."""


class DirectoryConnector(Connector):
    """Files in a folder. A partition is a file, named by its path below the folder; one reading is its whole truth."""

    Options: ClassVar[type[DirectoryOptions]] = DirectoryOptions
    options: DirectoryOptions

    def __init__(self, options: DirectoryOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._folder = context.base / options.path
        self._parsers = Parsers()
        self._notices = NoticeLog(context.log)
        self._away = Archiver(options, context.base, form_of=self._form, now=context.now)
        self._archive = self._away.archive
        self._readiness = Readiness(options.rules, self._folder, now=context.now, form_of=self._form)
        self._scanner = Scanner(
            self._folder,
            options.patterns,
            recursive=options.recursive,
            excluded=self._away.folders,
            links=options.after == "keep",
            case_sensitive=options.case_sensitive,
            is_companion=self._readiness.is_companion,
        )
        self._guard = MountGuard(self._folder, options.canary)
        self._stillness = StabilityTracker(options.settle_seconds)
        self._emptiness = StabilityTracker(options.empty_seconds)
        self._memory = ReadFiles()
        self._found = ScannedFile()
        self._parked: dict[str, str] = {}
        self._held: dict[str, tuple[Cursor, Settlement]] = {}
        self._unreadable: dict[str, Identity] = {}
        self._last_read: tuple[str, Identity] | None = None
        self._look_cost = 0.0
        self._watching = Watching(self._folder, recursive=options.recursive, how=options.watch, tell=self._tell_how)

    @classmethod
    def claims(cls, options: DirectoryOptions, base: Path) -> Sequence[FileClaim]:
        """The files that match, which leave unless they are kept, and the folders into which they or their rows go."""
        archive = base / options.archive if options.archive is not None else None
        puts = [base / folder for folder in (options.quarantine, options.failed) if folder is not None]
        if options.after == "archive" and archive is not None:
            puts += [archive, archive / "rejected", archive / "failed"]
        excluded = [*puts, archive] if archive is not None else puts
        return [
            FileClaim(
                folder=os.path.realpath(base / options.path),
                patterns=options.patterns,
                recursive=options.recursive,
                takes=options.after != "keep",
                puts=tuple(sorted({os.path.realpath(folder) for folder in puts})),
                excluded=tuple(sorted({os.path.realpath(folder) for folder in excluded})),
            )
        ]

    def partitions(self) -> Iterable[Partition]:
        """The files that are ready and may have something to tell, those written first come first.

        None is opened, unless a readiness rule asks what is in it.
        """
        if self._archive is not None and real_path(self._archive) == real_path(self._folder):
            raise SourceBroken(f"The archive is the folder {self._folder} itself: archived files would be read again.")
        with reachable(self._folder):
            self._watching.rearm()
            began = time.thread_time()
            partitions = self._look()
            self._look_cost = time.thread_time() - began
        yield from partitions
        if self._found.away:  # a part of the folder; the rest of it was handed over
            raise SourceUnavailable(self._found.away)

    def _look(self) -> list[Partition]:
        found = self._scan()
        now = self.context.now()
        self._memory.keep_only(found.files.keys() | found.empty.keys() if found.empty else found.files)
        self._readiness.take_in(found.files)
        still = self._stillness.look(found.files, now)
        done = self._memory.has_nothing_new
        in_question = [name for name in still if name in self._parked or not done(name, found.files[name])]
        in_question.sort(key=lambda name: (found.files[name].mtime_ns, name))
        ready = self._judged(in_question, found)
        empty = [name for name in self._emptiness.look(found.empty, now) if not done(name, found.empty[name])]
        return [Partition(name=name) for name in (*ready, *sorted(empty))]

    def _scan(self) -> ScannedFile:
        self._guard.check()
        found = self._scanner.scan()
        self._guard.check()  # what went away meanwhile left an empty folder
        if self.options.ready:
            for name in [name for name in (*found.files, *found.empty) if self._readiness.is_companion(name)]:
                found.files.pop(name, None)
                found.empty.pop(name, None)
        self._found = found
        return found

    def _judged(self, names: list[str], found: ScannedFile) -> list[str]:
        # Rows that come back have no marker, no sidecar and no group: somebody has mended them and dropped them.
        back = [name for name in names if _came_back(name)]
        ready = self._readiness.judge(
            [name for name in names if name not in back] if back else names,
            found.files,
            through=lambda name: name in found.files and self._is_done(name, found),
        )
        # A file that was parked for what lies beside it may be the same, and yet be another case now.
        for name, sentence in list(self._parked.items()):
            if self._readiness.parked(name) != sentence:
                self._memory.mend(name)
                del self._parked[name]
        return [name for name in (*ready, *back) if not self._memory.has_nothing_new(name, found.files[name])]

    def _is_done(self, name: str, found: ScannedFile) -> bool:
        return self._memory.has_nothing_new(name, found.files[name]) and name not in self._parked

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """The whole file; nothing where it is the one of the cursor, ``unchanged`` where only its hash is the cursor's.

        Nothing, too, where it is no longer the file that the last scan saw stand still: it has to stand still again.
        """
        name = partition.name
        path = self._path(name)
        try:
            identity = identity_of(path.stat())
            if identity.is_at(cursor):
                self._memory.read(name, identity)
                return
            opened = open_file(path, name)
        except FileNotFoundError:
            return  # taken away since the scan; there is nothing to read, and nothing was
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {cause(error)}") from error
        except SourceBroken as error:
            self._memory.broken(name, self._found.files.get(name), str(error))
            raise
        with opened.file:
            if not self._stands_still(opened):
                return
            self._last_read = (name, opened.identity)
            try:
                self._refuse(opened)
                yield from self._read(opened, cursor)
            except SourceBroken as error:
                self._memory.broken(name, opened.identity, str(error))
                raise
            except OSError as error:
                raise SourceUnavailable(f"{path} can't be read: {cause(error)}") from error

    def _refuse(self, opened: OpenFile) -> None:
        if not opened.identity.size:
            raise SourceBroken(
                f"{opened.name} is empty and has been for {self.options.empty_seconds:g} seconds (empty_seconds). Drop it"
                " again with its content, or take it away."
            )
        if reason := self._readiness.parked(opened.name):
            self._parked[opened.name] = reason
            raise SourceBroken(reason)

    def _stands_still(self, opened: OpenFile) -> bool:
        seen = self._found.files.get(opened.name) or self._found.empty.get(opened.name)
        judged = self.options.settle_seconds or self.options.ready or not opened.identity.size
        return not judged or seen is None or opened.identity.same_content(seen)

    def _read(self, opened: OpenFile, cursor: Cursor | None) -> Iterator[Batch]:
        sha256, known = opened.content(cursor)
        if known:
            yield unchanged(opened, sha256)
            return
        trailer = self.options.trailer if not _came_back(opened.name) else None
        end = trailer.start(cast("BinaryIO", opened.file)) if trailer is not None else None
        try:
            yield from batches_of(opened, sha256, self._form(opened.name), notices=self._notices, end=end)
        except SourceBroken:
            self._unreadable[opened.name] = opened.identity
            raise

    def _form(self, name: str) -> Format:
        return form_of(name, self.options.format, member=self.options.member).using(self._parsers)

    def settled(self, partition: Partition, cursor: Cursor, settlement: Settlement) -> None:
        """Archive or delete the file that the cursor speaks of, if it is still there and still the same.

        One of a group waits for the others: what is left of a group in the folder must always be the whole of it, or a crash
        would leave files that wait for ever for those that are gone.

        Raises:
            SettleLater: others of its group are not settled yet, or a grace has not passed.
        """
        if "offset" in cursor:
            return
        with reachable(self._folder):
            self._guard.check()  # a file of a share that is away is not one that somebody took away
            self._settle(partition.name, cursor, settlement)

    def _settle(self, name: str, cursor: Cursor, settlement: Settlement) -> None:
        if self.options.after == "keep" or self._group_of(name) is None:
            self._let_go(name, cursor, settlement, self._readiness.companions(name))
            return
        self._held[name] = (cursor, settlement)
        members = [member for member in self._group_members(name) if (self._folder / member).is_file()]
        if late := [member for member in members if not self._is_held(member)]:
            raise SettleLater(f"{name} goes together with {', '.join(late)}.")
        for member in members:
            self._away.check(self._path(member), member, self._held[member][1])
        for number, member in enumerate(members, start=1):
            last = [self._group_companion(name)] if number == len(members) else []
            self._let_go(member, *self._held[member], [*self._readiness.companions(member), *filter(None, last)])
        for member in (name, *members):
            self._held.pop(member, None)

    def _is_held(self, name: str) -> bool:
        """Whether the file as it is now is settled and waits for the rest of its group."""
        try:
            held = self._held.get(name)
            return held is not None and identity_of((self._folder / name).stat()).is_at(held[0])
        except OSError:
            return False

    def _group_of(self, name: str) -> Group | None:
        """The group that a file was read with; after a restart the folder has to be looked at first."""
        if self.options.ready and not self._found.files:
            self._readiness.take_in(self._scan().files)
        return self._readiness.group(name)

    def _group_members(self, name: str) -> tuple[str, ...]:
        group = self._readiness.group(name)
        return group.members if group is not None else (name,)

    def _group_companion(self, name: str) -> str:
        group = self._readiness.group(name)
        return group.companion if group is not None else ""

    def _let_go(self, name: str, cursor: Cursor, settlement: Settlement, companions: Iterable[str]) -> None:
        path = self._path(name)
        try:
            identity = identity_of(path.stat())
        except FileNotFoundError:
            return
        except OSError as error:
            raise SourceUnavailable(f"The status of {path} can't be read: {cause(error)}") from error
        if not identity.is_at(cursor):
            return
        self._away.check(path, name, settlement)
        if self.options.after != "keep":
            for companion in companions:  # first: without its marker a file waits, without its file a marker deceives
                self._put_companion_away(companion, settlement.ended)
        sha256 = str(cursor["sha256"])
        self._away.put_away(Disposal(path=path, name=name, identity=identity, sha256=sha256, settlement=settlement))
        if self.options.after == "keep":
            self._memory.through(name, identity)

    def _put_companion_away(self, name: str, ended: float) -> None:
        path = self._path(name)
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                return
            with path.open("rb") as file:
                identity, sha256 = identity_of(os.fstat(file.fileno())), hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {cause(error)}") from error
        self._away.put_companion_away(path, name, identity, sha256, ended)

    def holds(self, name: str) -> bool:
        """Whether there is a file of this name below the folder."""
        with reachable(self._folder):
            self._guard.check()
            there = _is_there(self._folder / name)
            self._guard.check()  # what went away meanwhile left an empty folder
            return there or not _is_there(self._folder)

    def failed(self, partition: Partition, reason: str) -> None:
        """Put a file aside whose content can't be read, if there is a place for such files.

        One that only can't be mapped stays, for as often as not it is the mapping that is wrong; so does one of a group, without
        which the others would wait for ever, and one that was parked for what lies beside it.
        """
        name = partition.name
        if self._last_read is not None and self._last_read[0] == name:
            self._memory.broken(name, self._last_read[1], reason)  # the mapping may have refused it, not this connector
        identity = self._unreadable.pop(name, None)
        if identity is None or self._group_of(name) is not None:
            return
        try:
            with reachable(self._folder):
                self._away.set_aside(self._path(name), name, identity, reason)
        except SourceUnavailable:
            self._memory.mend(name)  # it is read again, and so put aside once that is possible
            raise

    def again(self) -> None:
        """Take every file for one that may have something to tell."""
        self._memory.forget()

    def interrupt(self) -> None:
        """End the parsing of a file in a child process."""
        self._parsers.interrupt()

    def close(self) -> None:
        """End the parsing of a file in a child process, should one still be under way."""
        self._parsers.interrupt()

    def waiting(self) -> float | None:
        """Seconds until the next file may be still; None where none has to stand still any longer.

        What waits for something else is seen to by events and scans: nobody knows when it comes, if ever.
        """
        return self._stillness.next_seconds(self.context.now())

    @property
    def rescan_seconds(self) -> float:
        """How long at the most a missed event goes unnoticed."""
        options = self.options
        apart = _POLLS_APART if self._watching.polling else _LOOKS_APART
        return max(self._watching.interval(options.poll_seconds, options.rescan_seconds), self._look_cost * apart)

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Wake on every event below the folder, also once it appears or comes back."""
        return self._watching.listen(wake)

    def _tell_how(self, sentence: str) -> None:
        polling = self._watching.polling
        every = self.rescan_seconds
        self.context.log(f"{sentence}. It is looked through {'' if polling else 'besides '}every {every:g} seconds.")

    def notices(self) -> Iterator[str]:
        """Files that are not taken, as the last scan saw them."""
        found = self._found
        if found.unmatched:
            yield found.unmatched_sentence
        if found.refused:
            yield refused_sentence(found.refused)

    def verify(self) -> Iterator[Step]:
        """Whether the folder and the archive can be used as configured, and what is there."""
        archive = self._archive if self.options.after == "archive" else None
        try:
            with reachable(self._folder):
                yield from steps(
                    self._folder,
                    archive,
                    self._away.places,
                    scanner=self._scanner,
                    options=self.options,
                    guard=self._guard,
                )
        except SourceUnavailable as error:
            yield Step(name="folder", outcome="failed", sentence=str(error))

    def explain(self, name: str, cursor: Cursor | None = None) -> str | None:
        """Why a file is not read as it is now."""
        explainer = Explainer(
            folder=self._folder,
            options=self.options,
            scanner=self._scanner,
            guard=self._guard,
            memory=self._memory,
            stillness=self._stillness,
            emptiness=self._emptiness,
            readiness=self._readiness,
        )
        try:
            with reachable(self._folder):
                return explainer.explain(name, cursor, self.context.now())
        except SourceUnavailable as error:
            return str(error)

    def locate(self, path: Path) -> str | None:
        """The path below the folder, also of a file that was archived or put aside, and of the file of rejected rows."""
        with reachable(self._folder):
            located = locate(path, self._folder, self._away, self.options)
        return readable_name(located) if located is not None else None

    def describe_location(self, name: str, cursor: Cursor) -> str:
        """Where the file is that was read up to ``cursor``."""
        with reachable(self._folder):
            return whereabouts(name, cursor, self._folder, self._archive, self.options)

    def _path(self, name: str) -> Path:
        path = self._folder / name
        with reachable(path):
            inside = is_inside(path, self._folder)
        if not inside:
            raise SourceBroken(f"{name} leads out of the folder {self._folder}; it is not read.")
        return path


def _is_there(path: Path) -> bool:
    """Whether there is something; every error but that there is nothing is raised, because it says nothing."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _came_back(name: str) -> bool:
    """Whether a file holds rejected rows, going by its name."""
    return origin_name(name.rpartition("/")[2]) is not None

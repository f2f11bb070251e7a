"""The directory connector: an event wakes a scan, the scan decides, and a file goes only when all of it is settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import ClassVar

from connectors.directory import after
from connectors.directory.identity import Identity, identity_of
from connectors.directory.memory import Memory
from connectors.directory.options import DirectoryOptions
from connectors.directory.reading import OpenFile, batches_of, open_file, unchanged
from connectors.directory.scan import Found, Scanner, is_inside
from connectors.directory.stillness import Stillness
from connectors.directory.verifying import steps
from connectors.formats import format_of
from connectors.watching import FolderWatch
from ingestd.sdk import (
    Batch,
    Connector,
    Cursor,
    Partition,
    SourceBroken,
    SourceContext,
    SourceUnavailable,
    Step,
)


class DirectoryConnector(Connector):
    """Files in a folder. A partition is a file, named by its path below the folder; one reading is its whole truth."""

    Options: ClassVar[type[DirectoryOptions]] = DirectoryOptions
    options: DirectoryOptions

    def __init__(self, options: DirectoryOptions, context: SourceContext) -> None:
        super().__init__(options, context)
        self._folder = context.base / options.path
        self._archive = context.base / options.archive if options.archive is not None else None
        self._scanner = Scanner(
            self._folder,
            options.patterns,
            recursive=options.recursive,
            excluded=self._archive,
            links=options.after == "keep",
        )
        self._stillness = Stillness(options.settle_seconds)
        self._memory = Memory()
        self._found = Found()
        self._watch: FolderWatch | None = None

    def partitions(self) -> Iterable[Partition]:
        """The files that stand still and may have something to tell, those written first come first; none is opened."""
        if self._archive is not None and self._archive.resolve() == self._folder.resolve():
            raise SourceBroken(f"The archive is the folder {self._folder} itself: archived files would be read again.")
        if self._watch is not None:
            self._watch.rearm()  # before the scan: what comes after it is an event
        found = self._found = self._scanner.scan()
        self._memory.keep_only(found.files)
        still = self._stillness.look(found.files, self.context.now())
        through = self._memory.is_through
        ready = [(found.files[name].mtime_ns, name) for name in still if not through(name, found.files[name])]
        return [Partition(name=name) for _, name in sorted(ready)]

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:
        """The whole file; nothing where it is the one of the cursor, ``unchanged`` where only its hash is the cursor's.

        Nothing, too, where it is no longer the file that the last scan saw stand still: it has to stand still again.
        """
        name = partition.name
        path = self._path(name)
        try:
            if identity_of(path.stat()).is_at(cursor):
                return
            opened = open_file(path, name)
        except FileNotFoundError:
            return  # taken away since the scan; there is nothing to read, and nothing was
        except OSError as error:
            raise SourceUnavailable(f"{path} can't be read: {error.strerror}.") from error
        except SourceBroken as error:
            self._memory.broken(name, self._found.files.get(name), str(error))
            raise
        with opened.file:
            if not self._stands_still(opened):
                return
            try:
                yield from self._read(opened, cursor)
            except SourceBroken as error:
                self._memory.broken(name, opened.identity, str(error))
                raise
            except OSError as error:
                raise SourceUnavailable(f"{path} can't be read: {error.strerror}.") from error

    def _stands_still(self, opened: OpenFile) -> bool:
        seen = self._found.files.get(opened.name)
        return not self.options.settle_seconds or seen is None or opened.identity.same_content(seen)

    def _read(self, opened: OpenFile, cursor: Cursor | None) -> Iterator[Batch]:
        sha256 = opened.sha256()
        opened.check_unchanged()
        if cursor is not None and "offset" not in cursor and cursor.get("sha256") == sha256:
            yield unchanged(opened, sha256)
            return
        yield from batches_of(opened, sha256, format_of(opened.name, self.options.format, member=self.options.member))

    def settled(self, partition: Partition, cursor: Cursor) -> None:
        """Archive or delete the file that the cursor speaks of, if it is still there and still the same."""
        if "offset" in cursor:
            return
        name, sha256 = partition.name, str(cursor["sha256"])
        path = self._path(name)
        try:
            identity = identity_of(path.stat())
        except FileNotFoundError:
            return
        except OSError as error:
            raise SourceUnavailable(f"The status of {path} can't be read: {error.strerror}.") from error
        if identity.is_at(cursor):
            self._put_away(path, name, identity, sha256)

    def _put_away(self, path: Path, name: str, identity: Identity, sha256: str) -> None:
        match self.options.after:
            case "keep":
                self._memory.through(name, identity)
            case "archive":
                if self._archive is None:
                    raise SourceBroken("after: archive needs to know where: set archive to a folder.")
                after.archive(path, self._archive, name, identity=identity, sha256=sha256)
            case "delete":
                after.delete(path, identity=identity)

    def again(self) -> None:
        """Take every file for one that may have something to tell."""
        self._memory.forget()

    def waiting(self) -> float | None:
        """Seconds until the next file may be still; None where none has to stand still any longer."""
        return self._stillness.next_seconds(self.context.now())

    @property
    def rescan_seconds(self) -> float:
        """How long at the most a missed event goes unnoticed."""
        return self.options.rescan_seconds

    def watch(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Wake on every event below the folder, also once it appears or comes back."""
        return self._watching(wake)

    @contextmanager
    def _watching(self, wake: Callable[[], None]) -> Iterator[None]:
        with FolderWatch(self._folder, wake, recursive=self.options.recursive) as watch:
            self._watch = watch
            try:
                yield
            finally:
                self._watch = None

    def verify(self) -> Iterable[Step]:
        """Whether the folder and the archive can be used as configured, and what is there."""
        return steps(
            self._folder, self._archive if self.options.after == "archive" else None, self._scanner, self.options
        )

    def explain(self, name: str) -> str | None:
        """Why a file is still waiting, or what became of it."""
        found = self._scanner.scan()
        if name in found.refused:
            return f"{name} is not taken: {found.refused[name]}."
        if name in found.empty:
            return f"{name} is empty; it is taken once something is in it and stands still."
        identity = found.files.get(name)
        if identity is None:
            return self._explain_absent(name)
        return self._explain_present(name, identity)

    def _explain_present(self, name: str, identity: Identity) -> str:
        if (reason := self._memory.why_broken(name, identity)) is not None:
            return f"{name} can't be read and stays where it is until it changes. {reason}"
        if self._memory.is_through(name, identity):
            return f"{name} was read, and everything from it is settled."
        match self._stillness.seconds_left(name, self.context.now()):
            case None:
                return f"{name} has just arrived; it is considered at the next scan."
            case left if left > 0:
                return f"{name} must stand still for {left:.1f} more seconds (settle_seconds)."
            case _:
                return f"{name} stands still: it is being read, or what was read from it is not settled yet."

    def _explain_absent(self, name: str) -> str | None:
        path = self._folder / name
        if not is_inside(path, self._folder) or not path.exists():
            return None
        patterns = ", ".join(self.options.patterns)
        return f"{name} is not taken: its name is temporary or hidden, or matches none of {patterns}, or it is no file."

    def _path(self, name: str) -> Path:
        path = self._folder / name
        if not is_inside(path, self._folder):
            raise SourceBroken(f"{name} leads out of the folder {self._folder}; it is not read.")
        return path

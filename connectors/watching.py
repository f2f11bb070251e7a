"""Folder events: the only importer of watchdog. An event says no more than "look again"; what there is, a scan decides.

Whether events come at all is tried out on each mount: a hidden file is made and must be told of. Where that fails, and on
file systems that others change without this kernel's knowing, whoever scans does so at short intervals instead.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirModifiedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify import InotifyEmitter, InotifyObserver
from watchdog.observers.inotify_c import InotifyEvent, InotifyFD
from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

from connectors.mounts import mount_now

How: TypeAlias = Literal["auto", "events", "polling"]
"""How a folder is watched: as the self-test finds best, or as somebody has decided."""

_PROBE = ".ingestd-self-test.tmp"
_PROBE_SECONDS = 2.0
"""So long the event of the self-test's own file may take; where events come, they take well under a millisecond."""

# watchdog holds the first half of a rename back for half a second, and every event behind it, so as to pair it with the
# second half. Each archived file would so delay the next one dropped; a scan needs no pairs.
InotifyMoveEventGrouper.delay = 0.0

# Not the events of opening and of closing without a change: our own reading would wake us for ever.
_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    FileClosedEvent,
    DirCreatedEvent,
    DirModifiedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]


class FolderWatch:
    """While the context is open, ``wake`` is called from a thread of the watch when something below ``folder`` changed.

    The folder need not exist, and may vanish and come back: then there are no events until `rearm` finds it, which whoever
    scans periodically calls before each scan. Nothing is missed by that order: what came before the watch, the scan sees.
    ``failure`` says why there are no events, empty while there are. ``polling``: events can't be relied on, so scans have to be
    frequent; ``sentence`` says which and why, and ``tell`` is called with it whenever it is another.
    """

    def __init__(
        self,
        folder: Path,
        wake: Callable[[], None],
        *,
        recursive: bool,
        how: How = "auto",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._wake = wake
        self._recursive = recursive
        self._how: How = how
        self._tell = tell
        self._lock = threading.Lock()
        self._observer: BaseObserver | None = None
        self._watched: tuple[int, int] | None = None
        self._root = ""
        self._open = False
        self._tried = False
        self._heard = threading.Event()
        self.failure = "not watching yet"
        self.polling = how == "polling"
        self.sentence = ""

    def __enter__(self) -> Self:
        self._open = True
        with self._lock:
            self._follow()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._open = False
            self._disarm("no longer watching")

    def rearm(self) -> None:
        """Watch the folder that has this name now, if it is not the one that is watched already; try out whether events come.

        Blocks for as long as an event may take.
        """
        with self._lock:
            self._follow()
            if not self._open or self._tried or (self._watched is None and not self.failure):
                return
            if self.failure and not self._folder.is_dir():
                return
            self._tried = True
            self.polling, sentence = self._decided()
        if sentence != self.sentence:
            self.sentence = sentence
            self._tell(sentence)

    def _follow(self) -> None:
        if not self._open:
            return
        try:
            status = self._folder.stat()
        except OSError as error:
            self._disarm(f"{self._folder} can't be watched: {error.strerror}")
            return
        if self._watched != (status.st_dev, status.st_ino):
            self._disarm("")
            self._arm((status.st_dev, status.st_ino))

    def _decided(self) -> tuple[bool, str]:
        if self._how != "auto":
            return self._how == "polling", f"{self._folder} is watched by {self._how}, as configured"
        if self.failure:
            return True, f"{self._folder} is watched by polling: {self.failure}"
        polling, reason = self._self_test()
        return polling, f"{self._folder} is watched by {'polling' if polling else 'events'}: {reason}"

    def _self_test(self) -> tuple[bool, str]:
        mount = mount_now(self._folder)
        if mount is not None and mount.remote:
            return True, f"it lies on {mount.kind}, where changes made by others are not told"
        self._heard.clear()
        probe = self._folder / _PROBE
        try:
            os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except OSError as error:
            if mount is not None and mount.layered:
                return True, f"events could not be tried out ({error.strerror}), and on {mount.kind} some do not come"
            return False, f"events could not be tried out ({error.strerror}), but nothing speaks against them"
        try:
            heard = self._heard.wait(_PROBE_SECONDS)
        finally:
            probe.unlink(missing_ok=True)
        if heard:
            return False, "a file that was made to try it out was told of"
        kind = f" on {mount.kind}" if mount is not None else ""
        return True, f"a file that was made to try it out was not told of{kind} within {_PROBE_SECONDS:.0f} s"

    def _arm(self, identity: tuple[int, int]) -> None:
        self._tried = False
        observer = _Observer(self._wake)
        self._root = str(self._folder.resolve())  # a link itself has no events
        try:
            observer.schedule(_Waker(self), self._root, recursive=self._recursive, event_filter=_EVENTS)
            observer.start()
        except OSError as error:  # no such folder any more, or the system's limit of watches is reached
            self.failure = f"{self._folder} can't be watched: {error.strerror or error}"
            observer.unused()
            return
        self._observer, self._watched, self.failure = observer, identity, ""

    def _disarm(self, reason: str) -> None:
        self.failure = reason
        observer, self._observer, self._watched = self._observer, None, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _changed(self, event: FileSystemEvent) -> None:
        if os.fsdecode(event.src_path).endswith(f"/{_PROBE}"):
            self._heard.set()
            return
        if event.is_directory and event.event_type == "deleted" and os.fsdecode(event.src_path) == self._root:
            self._watched = None  # an inode number may be given to the next folder of this name at once
        self._wake()


class Watching:
    """What a connector has of a folder's watch: one while somebody listens, and none otherwise."""

    def __init__(self, folder: Path, *, recursive: bool, how: How, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._recursive = recursive
        self._how: How = how
        self._tell = tell
        self._watch: FolderWatch | None = None

    @property
    def polling(self) -> bool:
        """Whether somebody listens, and events can't be relied on."""
        return self._watch is not None and self._watch.polling

    def rearm(self) -> None:
        """To be called before each look: what comes after it is an event."""
        if self._watch is not None:
            self._watch.rearm()

    def interval(self, poll_seconds: float, rescan_seconds: float) -> float:
        """How often to look, going by whether events come."""
        return min(poll_seconds, rescan_seconds) if self.polling else rescan_seconds

    @contextmanager
    def listen(self, wake: Callable[[], None]) -> Iterator[None]:
        """While the context is open, ``wake`` is called on every event, also once the folder appears or comes back."""
        watch = FolderWatch(self._folder, wake, recursive=self._recursive, how=self._how, tell=self._tell)
        with watch:
            self._watch = watch
            try:
                yield
            finally:
                self._watch = None


class _Waker(FileSystemEventHandler):
    """Tells a watch of every event."""

    def __init__(self, watch: FolderWatch) -> None:
        self._watch = watch

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._watch._changed(event)  # noqa: SLF001 - the other half of the same thing


class _Observer(InotifyObserver):
    """Also calls ``overflowed`` when the kernel had to drop events; watchdog itself renews its watches then, and is silent."""

    def __init__(self, overflowed: Callable[[], None]) -> None:
        self._inotify_fd = _Telling(overflowed)
        self._inotify_fd.start()
        BaseObserver.__init__(self, InotifyEmitter, timeout=1, inotify_fd=self._inotify_fd)

    def unused(self) -> None:
        """Let go of what was opened for an observer that never started."""
        self._inotify_fd.stop()
        self._inotify_fd.join()


class _Telling(InotifyFD):
    def __init__(self, overflowed: Callable[[], None]) -> None:
        super().__init__()
        self._overflowed = overflowed

    def handle_event(self, event: InotifyEvent) -> None:
        super().handle_event(event)
        if event.is_queue_overflow:
            self._overflowed()

"""Folder events: the only importer of watchdog. An event says no more than "look again"; what there is, a scan decides."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

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
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver
from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

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
    ``failure`` says why there are no events, empty while there are.
    """

    def __init__(self, folder: Path, wake: Callable[[], None], *, recursive: bool) -> None:
        self._folder = folder
        self._wake = wake
        self._recursive = recursive
        self._lock = threading.Lock()
        self._observer: BaseObserver | None = None
        self._watched: tuple[int, int] | None = None
        self._open = False
        self.failure = "not watching yet"

    def __enter__(self) -> Self:
        self._open = True
        self.rearm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._open = False
            self._disarm("no longer watching")

    def rearm(self) -> None:
        """Watch the folder that has this name now, if it is not the one that is watched already."""
        with self._lock:
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

    def _arm(self, identity: tuple[int, int]) -> None:
        observer = Observer()
        try:
            observer.schedule(_Waker(self), str(self._folder), recursive=self._recursive, event_filter=_EVENTS)
            observer.start()
        except OSError as error:  # no such folder any more, or the system's limit of watches is reached
            self.failure = f"{self._folder} can't be watched: {error.strerror or error}"
            return
        self._observer, self._watched, self.failure = observer, identity, ""

    def _disarm(self, reason: str) -> None:
        self.failure = reason
        observer, self._observer, self._watched = self._observer, None, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _changed(self, event: FileSystemEvent) -> None:
        if event.is_directory and event.event_type == "deleted" and Path(os.fsdecode(event.src_path)) == self._folder:
            self._watched = None  # an inode number may be given to the next folder of this name at once
        self._wake()


class _Waker(FileSystemEventHandler):
    """Tells a watch of every event."""

    def __init__(self, watch: FolderWatch) -> None:
        self._watch = watch

    def on_any_event(self, event: FileSystemEvent) -> None:
        self._watch._changed(event)  # noqa: SLF001 - the other half of the same thing

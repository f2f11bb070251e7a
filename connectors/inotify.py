"""The inotify instance that all watched folders of the process share.

Only this module imports watchdog. The kernel allows an account 128 instances by default, so one instance for each folder would
limit ingestd to about 125 pipelines. An instance costs one thread for any number of folders.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeAlias

from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyEvent, InotifyFD, Mask, WatchDescriptor

# Events of opening, and of closing without a change, are excluded. With them, each reading would cause the next reading.
_MASK = Mask(
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_ONLYDIR
)


FolderEvent: TypeAlias = InotifyEvent


class FolderListener(Protocol):
    """Receives the events of watched folders. The methods are called in the thread of the instance, and must not block."""

    def on_event(self, event: FolderEvent) -> None:
        """Handle a change in a watched folder."""

    def on_watch_ended(self, watch: int) -> None:
        """Handle the end of a watch, because its folder was removed or unmounted."""

    def on_overflow(self) -> None:
        """Handle a loss of events."""

    def on_failure(self, error: Exception) -> None:
        """Handle an exception of `on_event`. No events arrive until the folders are added again."""


class FolderEvents:
    """The inotify instance, which is open while at least one listener watches a folder. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[FolderListener] = set()
        self._watches: dict[tuple[int, FolderListener], _Callback] = {}
        self._instance: InotifyFD | None = None

    def add(self, folder: int, listener: FolderListener) -> int:
        """Report the changes in an open folder to ``listener`` and return the watch. A folder may be added repeatedly.

        ``folder``: a descriptor. The caller opens the folder before, so an unresponsive server can't block the lock.

        Raises:
            OSError: the folder can't be watched; see `exhausted_limit`.
        """
        callback = _Callback(self, listener)
        with self._lock:
            if self._instance is None or not self._instance.is_alive():
                instance = InotifyFD()
                instance.start()
                self._instance = instance
                self._listeners.clear()
                self._watches.clear()
            watch = self._instance.add_callback(f"/proc/self/fd/{folder}".encode(), _MASK, callback, callback.id)
            if watch == -1:  # watchdog ignores the error for a folder without read permission
                self._instance.remove_callbacks([(watch, callback.id)])
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._remove([watch], listener)
            self._watches[watch, listener] = callback
            self._listeners.add(listener)
            return watch

    def is_watching(self, watch: int, listener: FolderListener) -> bool:
        """Return True if the watch still reports events to ``listener``."""
        with self._lock:
            alive = self._instance is not None and self._instance.is_alive()
            return alive and (watch, listener) in self._watches

    def remove(self, watches: Iterable[int], listener: FolderListener) -> None:
        """End watches of a listener."""
        with self._lock:
            self._remove(watches, listener)

    def _remove(self, watches: Iterable[int], listener: FolderListener) -> None:
        ended = [(watch, self._watches.pop((watch, listener), None)) for watch in watches]
        if self._instance is not None:
            self._instance.remove_callbacks(
                [(WatchDescriptor(watch), one.id) for watch, one in ended if one is not None]
            )

    def forget(self, watch: int, listener: FolderListener) -> bool:
        """Forget a watch that ended by itself. Return False if the watch was removed before."""
        with self._lock:
            return self._watches.pop((watch, listener), None) is not None

    def fail(self, listener: FolderListener, error: Exception) -> None:
        """End the watches of a listener that raised an exception."""
        with self._lock:
            self._remove([watch for watch, one in self._watches if one is listener], listener)
        listener.on_failure(error)

    def release(self, listener: FolderListener) -> None:
        """Forget a listener. The last call closes the instance and ends the thread."""
        with self._lock:
            self._listeners.discard(listener)
            if self._listeners or self._instance is None:
                return
            instance, self._instance = self._instance, None
        instance.stop()
        instance.join()


SHARED = FolderEvents()


def exhausted_limit(error: OSError) -> str:
    """Return the system limit that caused an error of `FolderEvents.add`, and how to raise the limit; empty if none did."""
    if error.errno == errno.ENOSPC:
        return _sysctl("fs.inotify.max_user_watches")
    if error.errno != errno.EMFILE:
        return ""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return "the process may open no more files; raise LimitNOFILE"
    return _sysctl("fs.inotify.max_user_instances")


def _sysctl(name: str) -> str:
    try:
        value = Path("/proc/sys", *name.split(".")).read_text(encoding="ascii").strip()
    except OSError:
        value = "not readable"
    return f"the account has used up {name} ({value}); raise it with sysctl"


class _Callback:
    """Passes events to a listener, in the thread that also serves all other folders.

    Therefore an exception of a listener must end only the watches of this listener, and not the thread.
    """

    def __init__(self, events: FolderEvents, listener: FolderListener) -> None:
        self._events = events
        self._listener = listener
        self.id = CallbackId(id(self))

    def on_event(self, event: InotifyEvent) -> None:
        self._call(lambda: self._listener.on_event(event))

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        if self._events.forget(wd, self._listener):
            self._call(lambda: self._listener.on_watch_ended(wd))

    def on_queue_overflow(self) -> None:
        self._call(self._listener.on_overflow)

    def _call(self, handle: Callable[[], None]) -> None:
        try:
            handle()
        except Exception as error:  # noqa: BLE001 - see above
            self._events.fail(self._listener, error)

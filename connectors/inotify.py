"""The inotify instance that all watched folders of the process share.

This is the only importer of watchdog. The kernel allows an account 128 instances by default, so one instance for each
folder would limit ingestd to about 125 pipelines. An instance costs one thread, whatever the number of folders.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchCallback,
    WatchDescriptor,
)

# Without the events of opening and of closing without a change: each reading would cause the next one.
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
    """Receives the events of the folders that it watches, in the thread of the instance.

    It must not block.
    """

    def on_event(self, event: FolderEvent) -> None:
        """Handle a change in a watched folder, the end of a watch (``is_ignored``) or a loss of events."""

    def on_failure(self, error: Exception) -> None:
        """Handle an exception of `on_event`. No events arrive until the folders are added again."""


class FolderEvents:
    """The shared instance, open while at least one listener watches a folder. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: set[FolderListener] = set()
        self._instance: _Instance | None = None

    def add(self, folder: int, listener: FolderListener) -> int:
        """Report the changes in an open folder to ``listener`` and return the watch.

        The same folder may be added again. It is open, so that a folder on a dead server blocks its caller, without a lock.

        Raises:
            OSError: it can't be watched; `exhausted_limit` says whether a limit of the system is the reason.
        """
        with self._lock:
            if self._instance is None or not self._instance.is_alive():
                instance = _Instance()
                instance.start()
                self._instance = instance
                self._listeners.clear()
            watch = self._instance.watch(f"/proc/self/fd/{folder}", listener)
            self._listeners.add(listener)
            return watch

    def is_watching(self, watch: int, listener: FolderListener) -> bool:
        """Return True if events of that watch still reach ``listener``."""
        with self._lock:
            return self._instance is not None and self._instance.has(watch, listener)

    def remove(self, watches: Iterable[int], listener: FolderListener) -> None:
        """End watches of a listener."""
        with self._lock:
            if self._instance is not None:
                self._instance.unwatch(watches, listener)

    def release(self, listener: FolderListener) -> None:
        """Forget a listener; the last one closes the instance and ends its thread."""
        with self._lock:
            self._listeners.discard(listener)
            if self._listeners or self._instance is None:
                return
            instance, self._instance = self._instance, None
        instance.stop()
        instance.join()


SHARED = FolderEvents()


def exhausted_limit(error: OSError) -> str:
    """Return which limit of the system an error of `FolderEvents.add` comes from and how to raise it.

    The result is empty if there is none.
    """
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


class _Instance(InotifyFD):
    """The kernel's instance with its thread. An exception of one listener does not affect the others."""

    def handle_event(self, event: InotifyEvent) -> None:
        with self._lock:
            if event.is_queue_overflow:
                listeners = {id(one): one for watch in self._watch_for_wd.values() for one in watch.callbacks.values()}
            elif event.is_ignored:
                listeners = {id(one): one for one in self._remove_watch(event.wd)}
            else:
                watch = self._watch_for_wd.get(event.wd)
                listeners = {id(one): one for one in watch.callbacks.values()} if watch is not None else {}
        for listener in cast("Iterable[FolderListener]", listeners.values()):
            try:
                listener.on_event(event)
            except Exception as error:  # noqa: BLE001 - the thread also serves every other folder
                self.unwatch(list(self._watch_for_wd), listener)
                listener.on_failure(error)

    def watch(self, path: str, listener: FolderListener) -> int:
        with self._lock:
            watch = self._get_or_create_watch(os.fsencode(path), _MASK)
            if watch.wd == -1:  # watchdog ignores the error for a folder without read permission
                del self._watch_for_wd[watch.wd]
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            watch.callbacks[CallbackId(id(listener))] = cast("WatchCallback", listener)
            return watch.wd

    def has(self, watch: int, listener: FolderListener) -> bool:
        with self._lock:
            found = self._watch_for_wd.get(WatchDescriptor(watch))
            return self.is_alive() and found is not None and CallbackId(id(listener)) in found.callbacks

    def unwatch(self, watches: Iterable[int], listener: FolderListener) -> None:
        key = CallbackId(id(listener))
        with self._lock:
            for number in watches:
                found = self._watch_for_wd.get(WatchDescriptor(number))
                if found is not None and key in found.callbacks:
                    self._remove_callback(found.wd, key)

"""Folder events: an event says no more than "look again"; what there is, a scan decides.

Whether events come at all is tried out on each mount: a hidden file is made and its event is waited for. If none comes, and on
file systems that others change without this kernel's knowing, the folder is scanned at short intervals instead.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from connectors.filesystem import describe_error
from connectors.inotify import SHARED, FolderEvent, exhausted_limit
from connectors.mounts import current_mount

WatchMode: TypeAlias = Literal["auto", "events", "polling"]
"""How a folder is watched: as the self-test finds best, or as the configuration says."""

_PROBE = ".ingestd-self-test.tmp"
_PROBE_SECONDS = 2.0
"""So long the event of the self-test's own file may take; where events come, they take well under a millisecond."""


class FolderWatch:
    """While the context is open, ``wake`` is called from a thread of the process when something below ``folder`` changed.

    The folder need not exist, and may vanish and come back: then there are no events until `rearm` finds it, so call `rearm`
    before each scan. That order misses nothing: what came before the watch, the scan sees. Sub-folders that appear are watched
    from the next `rearm` on, for which their own appearance is an event.

    ``failure`` says why there are no events, empty while there are. ``polling``: events can't be relied on, so scans have to be
    frequent; ``sentence`` says which and why, and ``tell`` is called with it whenever it is another.
    """

    def __init__(
        self,
        folder: Path,
        wake: Callable[[], None],
        *,
        recursive: bool,
        how: WatchMode = "auto",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._wake = wake
        self._recursive = recursive
        self._how: WatchMode = how
        self._tell = tell
        self._lock = threading.Lock()
        self._watched: tuple[int, int] | None = None
        self._root = -1
        self._watches: set[int] = set()
        self._folders_changed = False
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
        SHARED.release(self)

    def rearm(self) -> None:
        """Watch the folder that has this name now, if it is not the one that is watched already; try out whether events come.

        Blocks for as long as an event may take.
        """
        with self._lock:
            if not self._open:
                return
            self._follow()
            if self._tried or (self.failure and not os.path.isdir(self._folder)):  # noqa: PTH112 - raises nothing
                return
            self._tried = True
            self.polling, sentence = self._decided()
        if sentence != self.sentence:
            self.sentence = sentence
            self._tell(sentence)

    def on_event(self, event: FolderEvent) -> None:
        """Wake; see `connectors.inotify.FolderListener`."""
        if event.name == _PROBE.encode():
            self._heard.set()
            return
        if event.is_ignored and event.wd == self._root:
            self._watched = None  # an inode number may be given to the next folder of this name at once
        if event.is_queue_overflow or event.is_ignored or event.is_directory:
            self._folders_changed = True
        self._wake()

    def on_failure(self, error: Exception) -> None:
        """Watch anew at the next `rearm`; see `connectors.inotify.FolderListener`."""
        self._watched = None
        self._tell(f"An event of {self._folder} failed ({type(error).__name__}: {error}); it is watched anew")

    def _follow(self) -> None:
        try:
            status = self._folder.stat()
        except OSError as error:
            self._disarm(f"it can't be watched: {describe_error(error)}".removesuffix("."))
            return
        identity = (status.st_dev, status.st_ino)
        try:
            if self._watched != identity or not SHARED.is_watching(self._root, self):
                self._disarm("")
                self._tried = False
                self._root = SHARED.add(self._folder, self)
                self._watches = {self._root}
                self._folders_changed = True
                self._watched = identity
            if self._folders_changed:
                self._watch_sub_folders()
        except OSError as error:
            self._disarm(exhausted_limit(error) or f"it can't be watched: {describe_error(error)}".removesuffix("."))

    def _watch_sub_folders(self) -> None:
        self._folders_changed = False  # first: a folder that appears during the walk is an event of its parent's watch
        if not self._recursive:
            return
        found = {self._root}
        for folder, names, _ in os.walk(self._folder):
            names[:] = [name for name in names if not name.startswith(".")]  # no scan enters those
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118 - speed
                if os.path.islink(path):  # noqa: PTH114 - raises nothing
                    continue
                with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    found.add(SHARED.add(path, self))
        SHARED.remove(self._watches - found, self)
        self._watches = found

    def _decided(self) -> tuple[bool, str]:
        if self.failure:
            return True, f"{self._folder} is watched by polling: {self.failure}"
        if self._how != "auto":
            return self._how == "polling", f"{self._folder} is watched by {self._how}, as configured"
        polling, reason = self._self_test()
        return polling, f"{self._folder} is watched by {'polling' if polling else 'events'}: {reason}"

    def _self_test(self) -> tuple[bool, str]:
        mount = current_mount(self._folder)
        if mount is not None and mount.remote:
            return True, f"it is on {mount.kind}, where changes made by others cause no events"
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
            with contextlib.suppress(OSError):  # hidden, and no scan takes it
                probe.unlink()
        if heard:
            return False, "a file that was made to try it out caused an event"
        kind = f" on {mount.kind}" if mount is not None else ""
        return True, f"a file that was made to try it out caused no event{kind} within {_PROBE_SECONDS:.0f} s"

    def _disarm(self, reason: str) -> None:
        """End the watches. With a reason why there are no events, it is found out anew whether they come."""
        self.failure = reason
        self._watched = None
        if reason:
            self._tried = False
        watches, self._watches, self._root = self._watches, set(), -1
        SHARED.remove(watches, self)


class ConnectorWatch:
    """What a connector has of a folder's watch: one while somebody listens, and none otherwise."""

    def __init__(self, folder: Path, *, recursive: bool, how: WatchMode, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._recursive = recursive
        self._how: WatchMode = how
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

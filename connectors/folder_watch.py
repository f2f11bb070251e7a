"""Folder events. An event only starts a scan, and the scan detects the changes.

A self-test on each mount creates a hidden file and waits for the event of this file. If no event arrives, the folder is polled:
it is scanned at short intervals. It is also polled if other machines can change the file system without events here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self, TypeAlias

from connectors.beneath import Folder
from connectors.filesystem import describe_error
from connectors.inotify import SHARED, FolderEvent, exhausted_limit
from connectors.mounts import current_mount

WatchMode: TypeAlias = Literal["auto", "events", "polling"]
"""How a folder is watched. ``auto``: the self-test decides."""

_PROBE = ".ingestd-self-test.tmp"
_UNWATCHED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP})
"""Errors of a sub-folder that was just removed or replaced, or that may not be listed. They are ignored, because the next scan
reports real problems."""
_PROBE_SECONDS = 2.0
"""The time limit for the event of the self-test. Events usually take well under a millisecond."""


class FolderWatch:
    """Calls ``wake``, in another thread, when something below ``folder`` changes while the context is open.

    The folder need not exist, and can disappear and reappear. There are no events until `rearm` finds the folder, so call
    `rearm` before each scan. Then nothing is missed, because the scan sees every change that was made before the watch began.
    New sub-folders are watched from the next `rearm` on. Their creation is an event.

    ``failure``: why there are no events; empty if events arrive. ``is_polling``: events are not reliable, so scans must be
    frequent. ``sentence`` describes both. ``report`` is called with each new ``sentence``.
    """

    def __init__(
        self,
        folder: Path,
        wake: Callable[[], None] = lambda: None,
        *,
        recursive: bool = False,
        mode: WatchMode = "auto",
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._wake = wake
        self._recursive = recursive
        self._mode: WatchMode = mode
        self._report = report
        self._lock = threading.Lock()
        self._watched: tuple[int, int] | None = None
        self._root = -1
        self._watches: set[int] = set()
        self._folders_changed = False
        self._is_open = False
        self._is_tested = False
        self._probe_event = threading.Event()
        self.failure = "not watching yet"
        self.is_polling = mode == "polling"
        self.sentence = ""

    def __enter__(self) -> Self:
        self._is_open = True
        with self._lock:
            self._watch_current_folder()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_open = False
            self._end_watches("no longer watching")
        SHARED.release(self)

    @contextmanager
    def listen(self, wake: Callable[[], None]) -> Iterator[None]:
        """Open the context, and call ``wake`` at every event. The method can be used again after the context is closed."""
        self._wake = wake
        self.is_polling, self.sentence = self._mode == "polling", ""
        with self:
            yield

    def interval(self, poll_seconds: float, rescan_seconds: float) -> float:
        """Return the seconds between two scans, depending on whether events are reliable."""
        return min(poll_seconds, rescan_seconds) if self._is_open and self.is_polling else rescan_seconds

    def rearm(self) -> None:
        """Watch the folder that has this path now, and run the self-test if it is due.

        Blocks for at most the time limit of the self-test, ``_PROBE_SECONDS``.
        """
        with self._lock:
            if not self._is_open:
                return
            self._watch_current_folder()
            if self._is_tested or (self.failure and not os.path.isdir(self._folder)):  # noqa: PTH112 - raises nothing
                return
            self._is_tested = True
            self.is_polling, sentence = self._choose_mode()
        if sentence != self.sentence:
            self.sentence = sentence
            self._report(sentence)

    def on_event(self, event: FolderEvent) -> None:
        """Call ``wake``; see `connectors.inotify.FolderListener`."""
        if event.name == _PROBE.encode():
            self._probe_event.set()
            return
        if event.is_directory:
            self._folders_changed = True
        self._wake()

    def on_watch_ended(self, watch: int) -> None:
        """Let the next `rearm` watch all folders again, and call ``wake``; see `connectors.inotify.FolderListener`."""
        if watch == self._root:
            self._watched = None  # the next folder of this path may get the same inode number
        self.on_overflow()

    def on_overflow(self) -> None:
        """Let the next `rearm` look for new folders, and call ``wake``; see `connectors.inotify.FolderListener`."""
        self._folders_changed = True
        self._wake()

    def on_failure(self, error: Exception) -> None:
        """Let the next `rearm` watch the folder again; see `connectors.inotify.FolderListener`."""
        self._watched = None
        self._report(
            f"An event of {self._folder} failed ({type(error).__name__}: {error}); the folder is watched again"
        )

    def _watch_current_folder(self) -> None:
        try:
            with Folder.open_root(self._folder) as folder:
                self._watch_open_folder(folder)
        except OSError as error:
            reason = exhausted_limit(error) or f"it can't be watched: {describe_error(error)}".removesuffix(".")
            self._end_watches(reason)

    def _watch_open_folder(self, folder: Folder) -> None:
        identity = folder.identity
        if self._watched != identity or not SHARED.is_watching(self._root, self):
            self._end_watches("")
            self._is_tested = False
            self._root = SHARED.add(folder.descriptor, self)
            self._watches = {self._root}
            self._folders_changed = True
            self._watched = identity
        if self._folders_changed:
            self._watch_sub_folders(folder)

    def _watch_sub_folders(self, root: Folder) -> None:
        self._folders_changed = (
            False  # set before the walk, because a folder that is created during the walk causes an event
        )
        if not self._recursive:
            return
        found = {self._root}
        names = _sub_folders(root, "")
        while names:
            name = names.pop()
            try:
                with root.subfolder(name) as folder:
                    found.add(SHARED.add(folder.descriptor, self))
                    names += _sub_folders(folder, f"{name}/")
            except OSError as error:
                if error.errno not in _UNWATCHED:
                    raise
        SHARED.remove(self._watches - found, self)
        self._watches = found

    def _choose_mode(self) -> tuple[bool, str]:
        """Return whether the folder is polled, and a sentence with the reason."""
        if self.failure:
            return True, f"{self._folder} is watched by polling: {self.failure}"
        if self._mode != "auto":
            return self._mode == "polling", f"{self._folder} is watched by {self._mode}, as configured"
        is_polling, reason = self._self_test()
        return is_polling, f"{self._folder} is watched by {'polling' if is_polling else 'events'}: {reason}"

    def _self_test(self) -> tuple[bool, str]:
        mount = current_mount(self._folder)
        if mount is not None and mount.is_remote:
            return True, f"it is on {mount.kind}, where changes made by others cause no events"
        self._probe_event.clear()
        try:
            has_event = self._create_probe()
        except OSError as error:
            if mount is not None and mount.is_layered:
                return True, f"events could not be tested ({error.strerror}), and on {mount.kind} some do not arrive"
            return False, f"events could not be tested ({error.strerror}), and are expected to arrive"
        if has_event:
            return False, "a test file caused an event"
        kind = f" on {mount.kind}" if mount is not None else ""
        return True, f"a test file caused no event{kind} within {_PROBE_SECONDS:.0f} s"

    def _create_probe(self) -> bool:
        """Create a hidden file and return True if its event arrives. An existing file of this name is removed first."""
        with Folder.open_root(self._folder) as folder:
            if folder.has(_PROBE):
                folder.remove(_PROBE)
            os.close(folder.create(_PROBE, 0o600))
            try:
                return self._probe_event.wait(_PROBE_SECONDS)
            finally:
                with contextlib.suppress(OSError):  # a remaining hidden file does no harm, because scans ignore it
                    folder.remove(_PROBE)

    def _end_watches(self, reason: str) -> None:
        """End the watches. ``reason``: why there are no events; if it is not empty, the self-test is due again."""
        self.failure = reason
        self._watched = None
        if reason:
            self._is_tested = False
        watches, self._watches, self._root = self._watches, set(), -1
        SHARED.remove(watches, self)


def _sub_folders(folder: Folder, prefix: str) -> list[str]:
    """Return the direct sub-folders of a folder, without links, and without hidden folders, which scans ignore."""
    with folder.entries() as entries:
        return [
            prefix + entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        ]

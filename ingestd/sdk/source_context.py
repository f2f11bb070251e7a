"""The context of a connector: names, clocks, private files and signals of the runtime."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from ingestd.sdk.kept_file import KeptFile, private_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """The context that the runtime gives a connector, in addition to its options. ``pipeline``: the pipeline's name."""

    pipeline: str
    base: Path
    """The folder of the configuration file; relative paths are resolved against it."""
    now: Callable[[], float]
    """Returns seconds since the epoch, for times that are shown, stored, or compared with the times of files.

    Durations are measured with `elapsed`, because the clock may be set.
    """
    log: Callable[[str], None] = field(default=lambda _: None)
    """Logs a sentence about the source as a whole: a fact that an operator needs, and that no error reports."""
    cache_folder: Path | None = None
    """The folder for the files of `cache`; None: nothing is cached."""
    kept_folder: Path | None = None
    """The folder for the files of `keep`; None: there is no such folder."""
    unsaved: MutableMapping[str, bytes] | None = None
    """The files of `keep` in memory, if this process must not write to ``kept_folder``; None: it may write there."""
    steady: Callable[[], float] | None = None
    """The clock of `elapsed`; None: ``now``."""
    wake: Callable[[str], None] = field(default=lambda _: None)
    """Requests that the source of the pipeline with this name is read now. If there is no such pipeline, nothing happens. Any
    thread may call this function."""
    other_readers: Callable[[str], Collection[str]] = field(default=lambda _: ())
    """Returns the names of the other pipelines that read the file at a path. All links in its folder must be resolved."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the source ends. Then every wait of a connector must end within 2 seconds."""
    paused: threading.Event = field(default_factory=threading.Event)
    """Set while an operator pauses the pipeline. A source that serves requests must refuse them, because nothing is read."""
    until: float | None = None
    """In a one-shot `ingestd sync`: the time, by `elapsed`, at which a waiting subscription must end its reading.

    `math.inf`: only the options limit the reading. None: this process is the daemon.
    """

    def elapsed(self) -> float:
        """Return monotonic seconds, which also count while the machine sleeps. Only their differences have a meaning."""
        return (self.steady or self.now)()

    def keep(self, name: str) -> KeptFile:
        """Return a small private file for data that must not be lost, such as a client id.

        The file survives restarts and renames of the pipeline, and backups contain it. In a process that only reads, such as
        `ingestd check`, changes of the file stay in memory.
        """
        return KeptFile(self.kept_folder, name, unsaved=self.unsaved)

    def cache(self, name: str) -> Path | None:
        """Return the path of a cache file next to the state file; None if the runtime keeps no files.

        A missing file is created, readable only by its owner (mode 0600). After a crash, a restore or a rename of the pipeline,
        its content may be old or empty. So store the cursor in the file, too. Open the file only in `Connector.read`.

        Raises:
            OSError: the folder or the file can't be created.
        """
        if self.cache_folder is None:
            return None
        with private_folder(self.cache_folder, create=True) as folder:
            os.close(
                os.open(
                    name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder
                )
            )
        return self.cache_folder / name

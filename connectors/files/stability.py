"""Stability of files: how long this process has observed each file unchanged, because the times of files can be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connectors.files.identity import Identity


class StabilityTracker:
    """Records since when each file is unchanged. Performs no I/O: the times are parameters.

    ``now``: seconds since the epoch, compared only with the times of files. ``elapsed``: monotonic seconds, which a change of
    the clock does not affect; None: ``now`` is used.

    At the first update (the daemon's start), a file that was not written for ``settle_seconds`` is stable at once. A file that
    appears later, or has a time in the future, is stable only after it was observed unchanged for ``settle_seconds``. If
    ``trusts_times`` is False, this applies to all files, because the clock of another machine set their times.
    """

    def __init__(self, settle_seconds: float, *, trusts_times: bool = True) -> None:
        self._settle_seconds = settle_seconds
        self._since: dict[str, tuple[Identity, float]] = {}
        self._waiting: list[str] = []
        self._is_first = trusts_times

    def update(self, files: Mapping[str, Identity], now: float, *, elapsed: float | None = None) -> list[str]:
        """Record the files that the folder holds now. Return the names of the stable files."""
        passed = now if elapsed is None else elapsed
        known, self._since, self._waiting = self._since, {}, []
        stable: list[str] = []
        for name, identity in files.items():
            seen = known.get(name)
            if seen is not None and seen[0] == identity and seen[1] <= passed:
                since = seen[1]
            elif self._is_first and identity.mtime_ns / 1e9 <= now:
                since = passed - (now - identity.mtime_ns / 1e9)
            else:
                since = passed
            self._since[name] = (identity, since)
            (stable if passed - since >= self._settle_seconds else self._waiting).append(name)
        self._is_first = False
        return stable

    @property
    def waiting(self) -> Sequence[str]:
        """The files that were not stable at the last update. A later update makes a new list."""
        return self._waiting

    def seconds_left(self, name: str, elapsed: float) -> float | None:
        """Return how many more seconds the file must be unchanged: 0 if stable, None if unknown."""
        seen = self._since.get(name)
        return None if seen is None else max(0.0, seen[1] + self._settle_seconds - elapsed)

    def next_seconds(self, elapsed: float) -> float | None:
        """Return in how many seconds the next file becomes stable; None if every file is stable.

        The result is 0 if a file became stable after the last update, for example while other files were read.
        """
        left = (self.seconds_left(name, elapsed) for name in self._waiting)
        return min((seconds for seconds in left if seconds is not None), default=None)

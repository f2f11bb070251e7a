"""When a file has been still for long enough, by our own watching: the age that it claims can be wrong or in the future."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.files.identity import Identity


class StabilityTracker:
    """Remembers since when each file has looked as it does. Pure: the time is handed in, in seconds.

    At the first look (the daemon's start) a file that has not been written for the settle time is taken at once, unless
    its time lies in the future; whatever comes later must be seen to stand still.
    """

    def __init__(self, settle_seconds: float) -> None:
        self._settle_seconds = settle_seconds
        self._since: dict[str, tuple[Identity, float]] = {}
        self._waiting: list[str] = []
        self._first = True

    def look(self, files: Mapping[str, Identity], now: float) -> list[str]:
        """Take in what the folder holds now; the names of the files that are still."""
        known, self._since, self._waiting = self._since, {}, []
        still: list[str] = []
        for name, identity in files.items():
            seen = known.get(name)
            if seen is not None and seen[0].same_content(identity) and seen[1] <= now:
                since = seen[1]
            elif self._first and identity.mtime_ns / 1e9 <= now:
                since = identity.mtime_ns / 1e9
            else:
                since = now
            self._since[name] = (identity, since)
            (still if now - since >= self._settle_seconds else self._waiting).append(name)
        self._first = False
        return still

    def seconds_left(self, name: str, now: float) -> float | None:
        """How long the file must still stand; 0 where it is taken, None where it is not known."""
        seen = self._since.get(name)
        return None if seen is None else max(0.0, seen[1] + self._settle_seconds - now)

    def next_seconds(self, now: float) -> float | None:
        """In how many seconds the next file will have stood long enough; None where none is waiting.

        0 for one that was not still at the last look and is by now: since then others may have been read.
        """
        left = (self.seconds_left(name, now) for name in self._waiting)
        return min((seconds for seconds in left if seconds is not None), default=None)

"""What waits at the end of a file for an end of its own, and since when; time is handed in."""

from __future__ import annotations

from collections.abc import Callable, Collection

from connectors.files import Identity
from connectors.log.cursor import CursorPart

_SOON_SECONDS = 0.05


class PendingLines:
    """Last lines without end, by log, file and offset."""

    def __init__(self, idle_seconds: float, now: Callable[[], float]) -> None:
        self._idle_seconds = idle_seconds
        self._now = now
        self._since: dict[tuple[str, tuple[int, int], int], tuple[int, float]] = {}
        self._until: dict[str, float] = {}
        self._told: dict[str, str] = {}

    def look(self, log: str) -> None:
        """A log is looked at anew."""
        self._until.pop(log, None)
        self._told.pop(log, None)

    def keep_only(self, logs: Collection[str]) -> None:
        """Forget the logs that are gone."""
        self._since = {key: seen for key, seen in self._since.items() if key[0] in logs}
        for log in [log for log in self._until if log not in logs]:
            self.look(log)

    def again_soon(self, log: str) -> None:
        """The log's files did not keep still."""
        self._wait(
            log, self._now() + _SOON_SECONDS, f"The files of {log} are being renamed; they are looked at again at once."
        )

    def is_over(
        self, log: str, part: CursorPart, identity: Identity, *, quoted: bool = False, sentence: str = ""
    ) -> bool:
        """Whether what stands behind ``part`` has waited long enough; ``sentence`` tells of it where it is not a last row.

        It waits from the last time that its file was written; a quote that is not closed from when it was seen.
        """
        key, now = (log, part.id, part.offset), self._now()
        self._since = {other: seen for other, seen in self._since.items() if other[:2] != key[:2] or other == key}
        size, since = self._since.get(key, (-1, now))
        if not quoted and size != identity.size:
            since = now
        written = identity.mtime_ns / 1e9
        if size < 0 and written <= now:
            since = written  # nobody watched until now; the file's own time is the best there is
        self._since[key] = (identity.size, since)
        if now - since >= self._idle_seconds:
            return True
        half = f"The last row of {log} has no line end yet; it is taken as it is"
        quote = f"A row of {log} opens a quote that is not closed yet; it is parked"
        told = sentence or f"{quote if quoted else half} after {self._idle_seconds:g} seconds (idle_seconds)."
        self._wait(log, since + self._idle_seconds, told)
        return False

    def seconds(self) -> float | None:
        """Until the next may be over; None: nothing waits."""
        return max(0.0, min(self._until.values()) - self._now()) if self._until else None

    def sentence(self, log: str) -> str | None:
        """What waits in a log."""
        return self._told.get(log)

    def _wait(self, log: str, until: float, sentence: str) -> None:
        self._until[log] = min(until, self._until.get(log, until))
        self._told[log] = sentence

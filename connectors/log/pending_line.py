"""Pending lines: last lines of logs without a line end, and the time for which they have waited.

The monotonic clock measures durations. If a file was not observed before, its age is taken from its mtime.
"""

from __future__ import annotations

from collections.abc import Collection

from connectors.files.identity import Identity
from connectors.log.cursor import CursorPart
from ingestd.sdk import SourceContext

_SOON_SECONDS = 0.05


class PendingLines:
    """The waiting lines, by log, file and offset."""

    def __init__(self, idle_seconds: float, context: SourceContext) -> None:
        self.idle_seconds = idle_seconds
        self._context = context
        self._since: dict[tuple[str, tuple[int, int], int], tuple[int, float]] = {}
        self._until: dict[str, float] = {}
        self._sentences: dict[str, str] = {}

    def reset(self, log: str) -> None:
        """Forget the waits of a log, because a new reading begins."""
        self._until.pop(log, None)
        self._sentences.pop(log, None)

    def keep_only(self, logs: Collection[str]) -> None:
        """Forget every log that is not in ``logs``."""
        self._since = {key: seen for key, seen in self._since.items() if key[0] in logs}
        for log in [log for log in self._until if log not in logs]:
            self.reset(log)

    def retry_soon(self, log: str) -> None:
        """Let the log be read again in a moment, because its files are being renamed or cut."""
        sentence = f"The files of {log} are being renamed; they are read again in a moment."
        self._wait(log, self._context.elapsed() + _SOON_SECONDS, sentence)

    def is_overdue(
        self, log: str, part: CursorPart, identity: Identity, *, quoted: bool = False, sentence: str = ""
    ) -> bool:
        """Return True if the text after the part's offset has waited for ``idle_seconds``; else record that it waits.

        A line waits from the last write to the file. With ``quoted``, a row waits for the end of a quote, from the time when
        the quote was first seen. ``sentence`` describes a different reason to wait.
        """
        key, now = (log, part.id, part.offset), self._context.elapsed()
        self._since = {other: seen for other, seen in self._since.items() if other[:2] != key[:2] or other == key}
        size, since = self._since.get(key, (-1, now))
        if not quoted and size != identity.size:
            since = now
        age = self._context.now() - identity.mtime_ns / 1e9
        if size < 0 and age >= 0:
            since = now - age  # the file was not observed before, so its mtime is the best estimate
        self._since[key] = (identity.size, since)
        if now - since >= self.idle_seconds:
            return True
        if not sentence:
            line = f"The last row of {log} has no line end yet; it is read as it is"
            quote = f"A row of {log} opens a quote that is not closed yet; it is rejected"
            sentence = f"{quote if quoted else line} after {self.idle_seconds:g} seconds (idle_seconds)."
        self._wait(log, since + self.idle_seconds, sentence)
        return False

    def hold(self, log: str) -> None:
        """Record that the last line waits without a time limit, because it is not a valid record yet."""
        self._sentences[log] = (
            f"The last row of {log} is not complete: for example, it has no line end and too few fields. It is read when it is"
            " complete, or unchanged after the log is rotated."
        )

    def next_seconds(self) -> float | None:
        """Return the seconds until the next wait ends; None if no wait has a time limit."""
        return max(0.0, min(self._until.values()) - self._context.elapsed()) if self._until else None

    def sentence(self, log: str) -> str | None:
        """Return the sentence about the waiting line of a log; None if no line waits."""
        return self._sentences.get(log)

    def _wait(self, log: str, until: float, sentence: str) -> None:
        self._until[log] = min(until, self._until.get(log, until))
        self._sentences[log] = sentence

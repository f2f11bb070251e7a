"""The lines of the daemon's log that a selection wants, from where the configuration says that it is collected."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing

import msgspec

from ingestd.core.errors import IngestdError
from ingestd.daemon.logs.journal import Journal
from ingestd.daemon.logs.log_file import LogFile, Wait
from ingestd.daemon.logs.selection import LogLine, LogSelection, parse_line
from ingestd.settings.log import LogSettings


class NoLog(IngestdError):
    """There is neither a log file nor a journal; the sentence says what to configure."""


def find_log(settings: LogSettings, *, journalctl: str = "journalctl") -> LogFile | Journal:
    """Return where the log is collected.

    Raises:
        NoLog: the configured file does not exist, or no file is configured and this machine has no journal.
    """
    if settings.file is not None:
        log = LogFile(path=settings.file)
        if not log.exists():
            raise NoLog(
                f"There is no log file {settings.file} (the setting log.file). The daemon logs to standard error: start it with "
                f"'ingestd run 2>> {settings.file}', or correct the setting."
            )
        return log
    journal = Journal(unit=settings.unit, program=journalctl)
    if not journal.exists():
        raise NoLog(
            "This machine has no journal (journalctl), and the configuration has no log.file. The daemon logs to standard error: "
            "redirect it to a file, and name the file in the setting log.file."
        )
    return journal


class DaemonLog(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the wanted lines of a log: first `last_lines`, then `new_lines`.

    Memory does not depend on the size of the log. Both raise `OSError` or `JournalUnreadable` if it can't be read.
    """

    log: LogFile | Journal
    selection: LogSelection

    def last_lines(self, *, count: int | None) -> Iterator[LogLine]:
        """Yield the last ``count`` wanted lines that exist now, the oldest first; None: all."""
        if isinstance(self.log, Journal):
            limit = count if self.selection.is_everything else None
            wanted = self._wanted(self.log.until_now(count=limit, since=self.selection.since))
            yield from wanted if count is None else deque(wanted, maxlen=count)
        else:
            yield from self._last_of([self.log.lines(path) for path in self.log.files()], count)

    def all_lines(self, *, count: int | None, wait: Wait = time.sleep) -> Iterator[LogLine]:
        """Yield the last ``count`` wanted lines, and then those that are written, without an end. No line is lost between."""
        if isinstance(self.log, Journal):
            yield from self.last_lines(count=count)
            yield from self._wanted(self.log.from_now())
            return
        with closing(self.log.open()) as current:
            rotated = [self.log.lines(path) for path in self.log.rotated()]
            yield from self._last_of([current.until_now(), *rotated], count)
            yield from self._wanted(current.from_now(wait=wait))

    def _last_of(self, files: Sequence[Iterator[str]], count: int | None) -> Iterator[LogLine]:
        """Yield the last ``count`` wanted lines of files, of which the newest is the first."""
        if count is None:
            for lines in reversed(files):
                yield from self._wanted(lines)
            return
        found: deque[LogLine] = deque()
        for lines in files:
            found.extendleft(reversed(deque(self._wanted(lines), maxlen=count - len(found))))
            if len(found) == count:
                break
        yield from found

    def _wanted(self, lines: Iterator[str]) -> Iterator[LogLine]:
        return (line for line in map(parse_line, lines) if self.selection.wants(line))

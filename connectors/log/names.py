"""Names of logs: which file names are logs, and to which log a rotated file belongs. Performs no I/O."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from connectors.files.identity import Identity
from connectors.formats.compression import inner_name, packed_suffix
from connectors.formats.names import holds_no_data

NAME = "{name}"
WILDCARD = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"\d+")
_REMEMBERED = 10_000


class LogNames:
    """The globs of logs and of rotated files. In globs of rotated files, ``{name}`` means the log's name.

    A log has the name of its file. But if a pattern without wildcards matches, the pattern is the log's name. Only its upper
    and lower case may differ from the file's name.
    """

    def __init__(self, patterns: Iterable[str], rotated: Iterable[str], *, case_sensitive: bool = False) -> None:
        patterns = tuple(patterns)
        self._wildcards = [pattern for pattern in patterns if WILDCARD.search(pattern)]
        self._fixed = [pattern for pattern in patterns if not WILDCARD.search(pattern)]
        self._rotated = tuple(rotated)
        self._flags = 0 if case_sensitive else re.IGNORECASE
        self._logs: dict[str, str | None] = {}

    def is_log(self, name: str) -> bool:
        """Return True if a file of this name is the current file of a log."""
        return self._log_name(name) is not None

    def _log_name(self, name: str) -> str | None:
        """Return the log with a current file of this name; None if no log can have this file name."""
        if holds_no_data(name):
            return None
        if any(self._matches(name, pattern) for pattern in self._wildcards):
            return name
        return next((pattern for pattern in self._fixed if self._matches(name, pattern)), None)

    def _matches(self, name: str, pattern: str) -> bool:
        return _compile(pattern, self._flags).match(name) is not None

    def is_rotated(self, name: str, log: str) -> bool:
        """Return True if a file of this name is a rotated file of this log."""
        if self.is_log(name) or packed_suffix(name) == ".zip":
            return False
        globs = [pattern.replace(NAME, glob.escape(log)) for pattern in self._rotated]
        return any(self._matches(candidate, pattern) for candidate in (name, inner_name(name)) for pattern in globs)

    def log_of(self, name: str) -> str | None:
        """Return the log of a file; None if no log matches. If several logs match, return the one with the longest name."""
        try:
            return self._logs[name]
        except KeyError:
            log = self._find_log(name)
        if len(self._logs) >= _REMEMBERED:
            self._logs.clear()
        self._logs[name] = log
        return log

    def _find_log(self, name: str) -> str | None:
        if (log := self._log_name(name)) is not None:
            return log
        beginnings = [name[:end] for end in range(len(name) - 1, 0, -1)]
        logs = (log for log in (*beginnings, *self._fixed) if self.is_log(log))
        found = next((log for log in logs if self.is_rotated(name, log)), None)
        return self._log_name(found) if found is not None else None

    def logs(self, names: Iterable[str]) -> list[str]:
        """Return the sorted logs that have at least one file. This may be a rotated file."""
        return sorted({log for name in names if (log := self.log_of(name)) is not None})

    def current(self, log: str, names: Collection[str]) -> str:
        """Return the name of the file that a program writes for the log; the log's own name if there is no such file."""
        if log in names:
            return log
        return min((name for name in names if self._log_name(name) == log), default=log)

    def older(self, log: str, files: Mapping[str, Identity]) -> list[str]:
        """Return the rotated files of a log, the oldest first."""
        found = [name for name in files if self.log_of(name) == log and not self.is_log(name)]
        return sorted(found, key=lambda name: (files[name].mtime_ns, [-int(n) for n in _NUMBER.findall(name)], name))


@lru_cache(maxsize=4096)
def _compile(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern), flags)

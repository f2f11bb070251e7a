"""Which files of a folder are logs, and which are older files of which log, by their names alone. Pure."""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterable, Mapping

from connectors.files import Identity
from connectors.formats.compression import inner_name, packed_suffix

NAME = "{name}"
ANY_NAME = re.compile(r"[*?\[]")
_NUMBER = re.compile(r"\d+")
_REMEMBERED = 10_000


class LogNames:
    """The globs of logs and of rotated files; in the latter ``{name}`` stands for the log's name."""

    def __init__(self, patterns: Iterable[str], rotated: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._rotated = tuple(rotated)
        self._fixed = [pattern for pattern in self._patterns if not ANY_NAME.search(pattern)]
        self._known: dict[str, str | None] = {}

    def is_log(self, name: str) -> bool:
        """Whether a file of this name is one that is being written."""
        return not name.startswith((".", "~$")) and any(
            fnmatch.fnmatchcase(name, pattern) for pattern in self._patterns
        )

    def is_rotated(self, name: str, log: str) -> bool:
        """Whether a file of this name is an older one of this log."""
        if self.is_log(name) or packed_suffix(name) == ".zip":
            return False
        globs = [pattern.replace(NAME, glob.escape(log)) for pattern in self._rotated]
        return any(fnmatch.fnmatchcase(called, pattern) for called in (name, inner_name(name)) for pattern in globs)

    def log_of(self, name: str) -> str | None:
        """The log to which a file belongs, the one with the longest name; None: to none."""
        try:
            return self._known[name]
        except KeyError:
            log = self._log_of(name)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[name] = log
        return log

    def _log_of(self, name: str) -> str | None:
        if self.is_log(name):
            return name
        beginnings = [name[:end] for end in range(len(name) - 1, 0, -1)]
        logs = (log for log in (*beginnings, *self._fixed) if self.is_log(log))
        return next((log for log in logs if self.is_rotated(name, log)), None)

    def logs(self, names: Iterable[str]) -> list[str]:
        """The logs of which there is a file, in order; also one of which there are only older ones."""
        return sorted({log for name in names if (log := self.log_of(name)) is not None})

    def older(self, log: str, files: Mapping[str, Identity]) -> list[str]:
        """The rotated files of a log, oldest first."""
        found = [name for name in files if name != log and self.log_of(name) == log]
        return sorted(found, key=lambda name: (files[name].mtime_ns, [-int(n) for n in _NUMBER.findall(name)], name))

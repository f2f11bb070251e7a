"""What a reading guessed or left out, as a line in the log: the same sentence once, however many files it is true of."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingestd.sdk import NOTICE

_MOST = 1_000


class NoticeLog:
    """Logs the notices of one source by ``tell``."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._logged: set[str] = set()

    def log(self, name: str, facts: Mapping[str, str]) -> None:
        """Log the notice in the facts of the file ``name``, if there is one that was not logged yet."""
        notice = facts.get(NOTICE, "")
        if not notice or notice in self._logged:
            return
        if len(self._logged) >= _MOST:
            self._logged.clear()
        self._logged.add(notice)
        self._tell(f"{name}: {notice}")

"""Notices of a source: what a reading guessed or left out.

The same sentence is reported once for all files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingestd.sdk import NOTICE

_MOST = 1_000


class NoticeLog:
    """Reports the notices of one source by calling ``report`` with each new sentence."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reported: set[str] = set()

    def add(self, name: str, facts: Mapping[str, str]) -> None:
        """Report the notice in the facts of the file ``name``, unless there is none or it was reported before."""
        notice = facts.get(NOTICE, "")
        if not notice or notice in self._reported:
            return
        if len(self._reported) >= _MOST:
            self._reported.clear()
        self._reported.add(notice)
        self._report(f"{name}: {notice}")

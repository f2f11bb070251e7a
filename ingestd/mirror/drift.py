"""Drift: where a sink, read back, is not what the mirror knows to have been delivered.

Part of the seam that `ingestd.mirror.port` describes; ``tests/contract/mirror_drift.py`` holds the suite.

A check begins, is shown what the service holds piece by piece, and ends with findings. What it can be relied on for:

* Only what was delivered before the check began and has not been touched since is compared. What is pending or in flight at
  any moment of it, or written or removed by us during it, is no drift.
* An entry that is parked, or was dropped from there, is no drift: that the service lacks it is known.
* A key that the mirror knows from the service alone (it stood there when the sink was found) is nobody's business; what the
  mirror remembers of it follows the service. Any other key that no source has named was added by somebody else.
* A finding acts only on an entry that is still as it was compared.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import polars as pl

What: TypeAlias = Literal["added", "changed", "removed"]
"""What somebody else did to the key."""

Answer: TypeAlias = Literal["", "sent again", "removed again", "adopted"]
"""What was done about it since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One key that differs.

    ``wanted`` and ``wanted_type``: what was delivered last (None and empty for what was added). ``found`` and
    ``found_type``: what the service has (None for what was removed). ``pipeline`` is empty for what was added. ``since``:
    when it was first found so, seconds since the epoch.
    """

    sink: str
    workspace: str
    key: str
    what: What
    pipeline: str
    wanted: str | None
    wanted_type: str
    found: str | None
    found_type: str
    since: float
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftStatus:
    """The last reading back of a sink.

    ``at``: when it came to its end (None: never); ``entries``: what the sink held then. ``failure``: why the last try, at
    ``tried_at``, did not come to its end; empty where it did. Times are seconds since the epoch.
    """

    tried_at: float
    at: float | None
    entries: int
    added: int
    changed: int
    removed: int
    failure: str

    @property
    def found(self) -> int:
        """How many keys differ."""
        return self.added + self.changed + self.removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some findings, in the order of sinks and keys; ``next`` is where the next page begins, None after the last."""

    findings: tuple[Finding, ...]
    next: tuple[int, str] | None


START = (0, "")
"""Where the first page begins."""


class DriftReader(Protocol):
    """Looking at what was found."""

    def drift(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> Page:
        """What the last checks found in the sinks of ``pipelines``: entries of theirs, and what was added by others."""

    def drift_checks(self, pipelines: Collection[str]) -> list[tuple[str, DriftStatus]]:
        """The last check of each sink of ``pipelines`` that was ever tried, with the sink's address."""


class DriftKeeper(Protocol):
    """Checking sinks. Async; of one sink one check at a time. A check that a crash took leaves nothing."""

    async def begin_check(self, sink: int) -> int:
        """From now on what is settled in the sink is taken note of; the check's id."""

    async def show(self, check: int, entries: pl.DataFrame) -> None:
        """What the service holds, piece by piece: ``key``, ``value`` (null allowed), ``data_type`` (null: it names none)."""

    async def end_check(self, check: int) -> DriftStatus:
        """Everything was shown: compare, and keep what was found in the place of what an earlier check had found.

        The status has a ``failure``, and nothing is kept, where the service lost the sink meanwhile.
        """

    async def abandon_check(self, check: int, failure: str) -> None:
        """The sink could not be read to its end; what an earlier check had found stays."""

    async def repair(self, sink: int, pipelines: Collection[str], *, remove_added: bool) -> int:
        """Make what was changed or removed of these pipelines' entries pending again; how many.

        ``remove_added``: what was added by others is to be removed, too.
        """

    async def adopt_drift(self, sink: int, pipelines: Collection[str]) -> int:
        """Take what the service has for the truth, of these pipelines' entries and of what was added; how many.

        It stays so until a reading maps the record behind an entry again.
        """

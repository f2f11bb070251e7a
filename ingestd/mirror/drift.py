"""Drift: where a sink, read back, is not what the mirror knows to have been delivered.

Part of the seam that `ingestd.mirror.port` describes; ``tests/contract/mirror_drift.py`` holds the suite.

A check begins, is shown what the service holds piece by piece, and ends with findings. What it can be relied on for:

* Only what was delivered before the check began and has not been touched since is compared. What is pending or in flight at
  any moment of it, or written or removed by us during it, is no drift.
* An entry that is parked, or was dropped from there, is no drift: that the service lacks it is known.
* A key that the mirror knows from the service alone (it stood there when the sink was found) is nobody's business; what the
  mirror remembers of it follows the service. Any other key that no source has named was added by somebody else.
* A finding acts only on an entry that is still as it was compared.

Besides, the mirror knows which entries of a sink no source *explains*: found in the service and never named, or written by a
pipeline that left the configuration, writes another sink or reads another source now. Only a check removes such entries, and
only if its caller has made sure that every source of the sink was read completely since.
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


RemoveUnexplained: TypeAlias = Literal["keep", "own", "remove"]
"""Which unexplained entries a check removes: none; those that this daemon is known to have written; all of them."""

Why: TypeAlias = Literal["found", "inactive", "elsewhere", "retired"]
"""Why no source explains an entry: it was found in the service; its pipeline is not configured any more, writes another sink
now, or reads another source now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexplained:
    """An entry that no source explains. ``pipeline``: the one that wrote it, empty if it was found in the service."""

    sink: str
    workspace: str
    key: str
    value: str | None
    data_type: str
    pipeline: str
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class UnexplainedPage:
    """Some unexplained entries, in the order of sinks and keys; ``next`` is where the next page begins, None after the last."""

    entries: tuple[Unexplained, ...]
    next: tuple[int, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFinding:
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
    ``tried_at``, did not come to its end; empty where it did. Times are seconds since the epoch. ``unexplained``: how many of
    the entries no source explains. ``swept``: how many of those this very check removed;
    ``repaired``: how many entries it sent again because the state file was not the newest.
    """

    tried_at: float
    at: float | None
    entries: int
    added: int
    changed: int
    removed: int
    failure: str
    unexplained: int = 0
    swept: int = 0
    repaired: int = 0

    @property
    def found(self) -> int:
        """How many keys differ."""
        return self.added + self.changed + self.removed


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPage:
    """Some findings, in the order of sinks and keys; ``next`` is where the next page begins, None after the last."""

    findings: tuple[DriftFinding, ...]
    next: tuple[int, str] | None


START = (0, "")
"""Where the first page begins."""


class DriftReader(Protocol):
    """Looking at what was found."""

    def drift(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> DriftPage:
        """What the last checks found in the sinks of ``pipelines``: entries of theirs, and what was added by others."""

    def drift_checks(self, pipelines: Collection[str]) -> list[tuple[str, DriftStatus]]:
        """The last check of each sink of ``pipelines`` that was ever tried, with the sink's address."""

    def unexplained(self, pipelines: Collection[str], *, after: tuple[int, str] = START, limit: int) -> UnexplainedPage:
        """The entries that no source explains, of the sinks that ``pipelines`` write."""


class DriftKeeper(Protocol):
    """Checking sinks. Async; of one sink one check at a time. A check that a crash took does not count; the next replaces it."""

    async def begin_check(self, sink: int) -> int:
        """From now on what is settled in the sink is taken note of; the check's id."""

    async def show(self, check: int, entries: pl.DataFrame) -> None:
        """Take in what the service holds, piece by piece.

        ``key``, ``value`` (null allowed), ``data_type`` (null: it names none) and, if the service tells it, ``author``: who
        created the entry and wrote it last, null if these are two.
        """

    async def end_check(
        self, check: int, *, unexplained: RemoveUnexplained = "keep", doubt: bool = False
    ) -> DriftStatus:
        """Everything was shown: compare, and keep what was found in the place of what an earlier check had found.

        ``unexplained``: which of the entries that no source explains become pending removals. ``own`` are those of a source
        that its pipeline no longer reads; and, in a sink that an earlier state file of this daemon wrote, those of the one
        author who wrote every explained entry. ``doubt``: if the mirror may not know what was sent to the sink, send again what
        differs and what the sources have named since the start; what the mirror does not know becomes unexplained.

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

"""What is parked, for those who work with it: which rejections are meant, what is told of each, what can be done.

Part of the seam that `ingestd.mirror.port` describes; ``tests/contract/mirror_rejections.py`` holds the suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from ingestd.core.record import Position

Subject: TypeAlias = Literal["record", "entry", "conflict", "partition"]
"""A record of the source, an entry that the service refused, one that another pipeline writes, a partition as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rejections are meant: those that fit all that is said; nothing said means every one.

    ``reason``: a part of the sentence, in small or capital letters. ``file``: a partition's name, the last part of one, or a
    pattern with ``*``, ``?`` and ``[…]``; ``key``: an entry's key or such a pattern.
    """

    ids: tuple[int, ...] = ()
    pipeline: str = ""
    reason: str = ""
    file: str = ""
    key: str = ""

    def __str__(self) -> str:
        said = [
            f"{name} {getattr(self, name)}" for name in ("pipeline", "reason", "file", "key") if getattr(self, name)
        ]
        shown = ", ".join(map(str, self.ids[:10])) + (f" and {len(self.ids) - 10} more" if len(self.ids) > 10 else "")
        return ", ".join([*said, *([f"number {shown}"] if self.ids else [])]) or "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Something that is parked: a record, an entry that the service or another pipeline stands against, or a partition.

    ``position`` is None for a partition as a whole; ``key`` is empty for what never became an entry; ``status`` is the
    service's, where it was the service that refused. ``record``: as it was in the source. ``removal``: the entry was to be
    removed. ``at`` and ``last_at``: when it was parked first and last, seconds since the epoch; ``times``: how often it was
    judged. ``retried``: it is mapped again at the next reading.
    """

    id: int
    subject: Subject
    pipeline: str
    partition: str
    workspace: str
    sink: str
    position: Position | None
    field: str
    key: str
    value: str | None
    data_type: str
    removal: bool
    reason: str
    status: int | None
    record: Mapping[str, str | None]
    at: float
    last_at: float
    times: int
    retried: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One time that the service refused an entry for good; ``at`` in seconds since the epoch."""

    at: float
    operation: str
    status: int | None
    request_id: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """What was put back: ``records`` (and conflicts and partitions) to be mapped again, ``entries`` that are pending again.

    ``pipelines``: those of the records; a reading of them is due.
    """

    records: int = 0
    entries: int = 0
    pipelines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How many rejections the configured bounds have cost so far, and when last (seconds since the epoch)."""

    count: int
    at: float


class RejectionReader(Protocol):
    """Looking at what is parked. Each call is consistent; pages are in the order of the ids, the oldest first."""

    def selected(self, selection: Selection, *, after: int = 0, limit: int) -> list[Rejection]:
        """The next page: rejections that fit, with an id greater than ``after``."""

    def count(self, selection: Selection) -> int:
        """How many fit."""

    def refusals(self, rejection: int) -> list[Refusal]:
        """Every time the service refused the entry of a rejection, the first one first; none for records."""

    def forgotten(self) -> Forgotten | None:
        """What the bounds have cost; None for nothing."""


class RejectionKeeper(Protocol):
    """Doing something about what is parked. Async; a method returns when what it did is durable."""

    async def retry(self, selection: Selection) -> Retried:
        """Put the chosen ones back.

        Refused entries are pending again, as they are. A record stays parked until a reading that began after this call has
        mapped it again: its partition is due to be read from the start, and only what was asked for is mapped.
        """

    async def drop(self, selection: Selection) -> int:
        """Forget the chosen ones; how many.

        Nothing else changes: what the record or entry would have said is not said, until the source has it otherwise or the
        partition is read whole. That the service lacks a dropped entry is no drift.
        """

    async def bound(self, *, keep_seconds: float | None, keep_rows: int | None) -> int:
        """Forget what was parked last longer ago than ``keep_seconds``, and the oldest beyond ``keep_rows``; how many."""

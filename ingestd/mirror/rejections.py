"""Rejections: their selection, their details, and the operations on them.

See `ingestd.mirror.port` for the mirror. The contract suite is ``tests/contract/mirror_rejections.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ingestd.core.phrases import first_names
from ingestd.core.record import Position

Subject: TypeAlias = Literal["record", "entry", "conflict", "partition"]
"""What was rejected: a source record, an entry refused by the service, a key that another pipeline writes, or a partition."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of rejections: all given conditions must match; an empty selection matches all rejections.

    ``reason``: a part of the sentence, ignoring case. ``file``: a partition's name, its last component, or a
    pattern with ``*``, ``?`` and ``[…]``; ``key``: an entry's key or such a pattern.
    """

    ids: tuple[int, ...] = ()
    pipeline: str = ""
    reason: str = ""
    file: str = ""
    key: str = ""

    def __str__(self) -> str:
        filters = [
            f"{name} {getattr(self, name)}" for name in ("pipeline", "reason", "file", "key") if getattr(self, name)
        ]
        return ", ".join([*filters, *([f"number {first_names(self.ids, 10)}"] if self.ids else [])]) or "all"


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A rejected record, entry, key or partition.

    ``position`` is None for a whole partition; ``key`` is empty if there is no entry; ``status`` is the HTTP status if the
    service refused the entry. ``record``: the fields in the source. ``removal``: the service refused to remove the entry.
    ``at``, ``last_at``: first and last rejection, in seconds since the epoch; ``times``: number of rejections. ``retried``:
    the record is mapped again at the next reading.
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


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A permanent refusal of an entry by the service; ``at`` in seconds since the epoch."""

    at: float
    operation: str
    status: int | None
    request_id: str
    words: str


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a retry. ``records``: number of records, conflicts and partitions to map again.

    ``entries``: number of entries that are pending again. ``pipelines``: the pipelines that must be read for ``records``.
    """

    records: int = 0
    entries: int = 0
    pipelines: tuple[str, ...] = ()


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The number of rejections deleted because of the limits, and the time of the last deletion (seconds since the epoch)."""

    count: int
    at: float


class RecordPage(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a page of rejections, ordered by id and without empty records, and the pipelines of these records.

    ``last``: the id of the page's last rejection.
    """

    records: Sequence[Mapping[str, str | None]]
    pipelines: Sequence[str]
    last: int

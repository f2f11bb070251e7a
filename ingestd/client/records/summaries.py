"""The part of each record that the daemon reads. Every other member is ignored, and most may be missing."""

from __future__ import annotations

from ingestd.client.records.base import Record
from ingestd.client.records.sinks import ItemProblem


class EntrySummary(Record, frozen=True, kw_only=True):
    """An entry."""

    key: str
    value: str | None = None
    data_type: str | None = None


class SinkSummary(Record, frozen=True, kw_only=True):
    """A data sink; ``entries`` is None in lists."""

    id: str
    label: str = ""
    visible_id: str | None = None
    entries: tuple[EntrySummary, ...] | None = None


class WorkspaceSummary(Record, frozen=True, kw_only=True):
    """A workspace."""

    id: str
    label: str = ""


class BulkItemResult(Record, frozen=True, kw_only=True):
    """The result of the item at ``index`` (from 0) of a bulk request."""

    index: int
    status: int
    error: ItemProblem | str | None = None

    @property
    def reason(self) -> str:
        """Why the service rejected the item."""
        return self.error if isinstance(self.error, str) else (self.error or ItemProblem()).reason


class BulkResult(Record, frozen=True, kw_only=True):
    """The result of a bulk update: the number of accepted items, and the result of each item if the service gives it."""

    accepted: int
    results: tuple[BulkItemResult, ...] | None = None


class BulkSummary(Record, frozen=True, kw_only=True):
    """The forms in which services report a bulk update; exactly one of the members is used."""

    accepted: int | None = None
    entries: tuple[EntrySummary, ...] | None = None
    results: tuple[BulkItemResult, ...] | None = None

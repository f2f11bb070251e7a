"""The history of the entries of a data sink, an extension of the interface."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypedDict, Unpack

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.declarations import ChangeOptions, PageOptions, declare, paged
from ingestd.client.records import PastChange, SinkComparison, SinkHistory


class TakeOptions(TypedDict, total=False):
    """How many records of the beginning are returned."""

    take: int | None


class HistoryMethods:
    """What is kept of the history, the changes of an entry, and the differences between two moments."""

    @declare(operations.GET_HISTORY)
    def get_history(self, workspace: str, sink: str, *, if_none_match: str | None = None) -> SinkHistory:
        """Return what is kept of the history of a sink."""

    @declare(operations.UPDATE_HISTORY)
    def update_history(
        self,
        workspace: str,
        sink: str,
        *,
        changes: int | UnsetType | None = UNSET,
        days: int | UnsetType | None = UNSET,
        **options: Unpack[ChangeOptions],
    ) -> SinkHistory:
        """Set how many changes of each entry are kept, and for how many days; None: as the service does."""

    @declare(operations.LIST_CHANGES)
    def list_changes(
        self, workspace: str, sink: str, key: str, **options: Unpack[TakeOptions]
    ) -> tuple[PastChange, ...]:
        """Return the newest changes of an entry, a hundred by default."""

    @paged(list_changes, page_length=500)
    def iter_changes(self, workspace: str, sink: str, key: str, **options: Unpack[PageOptions]) -> Iterator[PastChange]:
        """Return every kept change of an entry, the newest first, read page by page."""

    @declare(operations.COMPARE_SINK, rename={"since": "from", "until": "to"})
    def compare_sink(
        self,
        workspace: str,
        sink: str,
        *,
        since: datetime,
        until: datetime | None = None,
        take: int | None = None,
    ) -> SinkComparison:
        """Return the first differences between two instants; ``until`` is now by default."""

"""Data sinks and their entries (contract DS1, DS2, DS3, DS4, DS5, DS6, DS7, DS8, DS9, DS10, DS11, M1, M3, M8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Unpack

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.checks import check_count, check_indexes, check_key
from ingestd.client.declarations import (
    Arguments,
    ChangeOptions,
    CreateOptions,
    IterOptions,
    ListOptions,
    declare,
    paged,
    streamed,
)
from ingestd.client.readers import entry_of, reader
from ingestd.client.records import BulkCounts, Entry, EntryChange, Icon, NewEntry, PartialResult, Sink, SinkInfo
from ingestd.client.request import RecordStream, Request
from ingestd.client.sink_stream import SinkStream
from ingestd.wire import names


class MassOptions(CreateOptions, total=False):
    """``create`` False: an entry that does not exist is ``NotFound``."""

    create: bool | None


class MassEntryOptions(MassOptions, total=False):
    """If ``observed_at`` is older than the stored one, nothing is changed, and the stored entry is returned."""

    data_type: str | UnsetType
    observed_at: datetime | UnsetType


def _same_key(entry: Entry, given: Arguments) -> None:
    check_key(entry.key, given["key"])


class SinkMethods:
    """Data sinks and their entries. The service announces with the header X-Bulk-Mass that it accepts bulk updates."""

    @declare(operations.GET_SINK)
    def get_sink(self, workspace: str, sink: str, *, if_none_match: str | None = None) -> Sink:
        """Return a sink with all its entries in memory; ``iter_entries`` reads a large one entry by entry."""

    @streamed
    def iter_entries(self, workspace: str, sink: str) -> RecordStream[Entry]:
        """Return the entries of a sink of any size, one after the other. Memory: one network chunk.

        An error may be raised after entries were returned: it is not known then which are missing. Close the generator if
        you leave it early (``contextlib.closing``, ``aclosing``).
        """
        stream = SinkStream(entry_of)
        request = Request(operation=operations.GET_SINK, read=reader(Sink), path={"workspace": workspace, "sink": sink})
        return RecordStream(request=request, feed=stream.feed, finish=stream.finish)

    @declare(operations.GET_SINKS)
    def get_sinks(self, workspace: str, **options: Unpack[ListOptions]) -> tuple[Sink, ...]:
        """Return every sink of a workspace with all its entries.

        With ``take`` or ``skip``, return a part of them.
        """

    @declare(operations.LIST_SINKS)
    def list_sinks(self, workspace: str, **options: Unpack[ListOptions]) -> tuple[SinkInfo, ...]:
        """Return every sink of a workspace without entries, by default by serial.

        With ``take`` or ``skip``, return a part of them.
        """

    @paged(list_sinks, page_length=200)
    def iter_sinks(self, workspace: str, **options: Unpack[IterOptions]) -> Iterator[SinkInfo]:
        """Return every sink of a workspace without entries, read page by page."""

    @declare(operations.CREATE_SINK)
    def create_sink(
        self,
        workspace: str,
        *,
        label: str,
        description: str | None = None,
        tags: str | None = None,
        icon: Icon | str | None = None,
        entries: Sequence[NewEntry] = (),
        id: str | UnsetType = UNSET,  # noqa: A002 - the name in the interface document
        **options: Unpack[CreateOptions],
    ) -> Sink:
        """Create a sink with its first entries, all or none."""

    @declare(operations.UPDATE_SINK)
    def update_sink(
        self,
        workspace: str,
        sink: str,
        *,
        label: str | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        tags: str | UnsetType | None = UNSET,
        icon: Icon | str | UnsetType | None = UNSET,
        **options: Unpack[ChangeOptions],
    ) -> None:
        """Change the given members of a sink."""

    @declare(operations.DELETE_SINK)
    def delete_sink(self, workspace: str, sink: str, **options: Unpack[ChangeOptions]) -> None:
        """Remove a sink with its entries."""

    @declare(operations.GET_ENTRY)
    def get_entry(self, workspace: str, sink: str, key: str, *, if_none_match: str | None = None) -> Entry:
        """Return one entry by its key; or by its id, if no entry has this key."""

    @declare(operations.CREATE_ENTRY, check=_same_key)
    def create_entry(
        self,
        workspace: str,
        sink: str,
        *,
        key: str,
        data_type: str,
        value: str | None = None,
        id: str | UnsetType = UNSET,  # noqa: A002 - the name in the interface document
        **options: Unpack[CreateOptions],
    ) -> Entry:
        """Create an entry. An existing key raises ``Conflict``."""

    @declare(operations.UPDATE_ENTRY)
    def update_entry(
        self,
        workspace: str,
        sink: str,
        key: str,
        *,
        value: str | UnsetType | None = UNSET,
        data_type: str | UnsetType = UNSET,
        **options: Unpack[ChangeOptions],
    ) -> Entry:
        """Change the value, the data type or both."""

    @declare(operations.DELETE_ENTRY)
    def delete_entry(self, workspace: str, sink: str, key: str, **options: Unpack[ChangeOptions]) -> None:
        """Remove an entry."""

    @declare(operations.MASS, in_query=["create"], check=_same_key)
    def mass_update_entry(
        self, workspace: str, sink: str, *, key: str, value: str, **options: Unpack[MassEntryOptions]
    ) -> Entry:
        """Set an entry's value, and create the entry unless it exists."""

    @declare(operations.MASS_BY_KEY, in_query=["create"], also_in_body=["key"], check=_same_key)
    def mass_update_by_key(
        self, workspace: str, sink: str, key: str, *, value: str, **options: Unpack[MassEntryOptions]
    ) -> Entry:
        """Set an entry's value with the key in the path, the other reading of the interface document (contract M1)."""

    @declare(
        operations.MASS,
        body="items",
        in_query=["create"],
        check=lambda entries, given: check_count(len(entries), len(given["items"])),
    )
    def mass_update(
        self, workspace: str, sink: str, items: Sequence[EntryChange], **options: Unpack[MassOptions]
    ) -> tuple[Entry | None, ...]:
        """Write and remove many entries, all or none. Returns the entry of each item, None if it is removed."""

    @declare(
        operations.MASS,
        body="items",
        in_query=["create"],
        prefer=names.RETURN_MINIMAL,
        check=lambda counts, given: check_count(counts.accepted, len(given["items"])),
    )
    def mass_update_minimal(
        self, workspace: str, sink: str, items: Sequence[EntryChange], **options: Unpack[MassOptions]
    ) -> BulkCounts:
        """Write and remove many entries, all or none. Returns counts only, which is several times faster."""

    @declare(
        operations.MASS,
        body="items",
        in_query=["create"],
        fixed_query={"partial": "true"},
        check=lambda found, given: check_indexes((one.index for one in found.results), len(given["items"])),
    )
    def mass_update_partial(
        self, workspace: str, sink: str, items: Sequence[EntryChange], **options: Unpack[MassOptions]
    ) -> PartialResult:
        """Write and remove the entries that are valid. Returns the result of each item."""

"""Data sinks (contract DS1, DS2, DS3, DS5, DS6, DS7)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.decoding import nothing
from ingestd.client.paging import Listing
from ingestd.client.reading import many, versioned
from ingestd.client.records import Icon, NewEntry, Sink, SinkInfo
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, headers, members, query

_SINK = versioned(Sink)
_SINKS = many(Sink)
_INFOS = many(SinkInfo)


def get_sink(workspace: str, sink: str, *, if_none_match: str | None = None) -> Request[Sink]:
    """A sink with all its entries in memory; ``iter_entries`` reads those of a large one piece by piece."""
    return Request(
        operation=operations.GET_SINK,
        read=_SINK,
        names={"workspace": workspace, "sink": sink},
        headers=headers(if_none_match=if_none_match),
    )


def get_sinks(
    workspace: str,
    *,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[Sink, ...]]:
    """Every sink of a workspace with all entries, or a stretch of them."""
    return Request(
        operation=operations.GET_SINKS,
        read=_SINKS,
        names={"workspace": workspace},
        query=query(take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by),
    )


def list_sinks(
    workspace: str,
    *,
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[SinkInfo, ...]]:
    """Every sink of a workspace without entries, or a stretch of them; by serial unless told otherwise."""
    return Request(
        operation=operations.LIST_SINKS,
        read=_INFOS,
        names={"workspace": workspace},
        query=query(take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by),
    )


def iter_sinks(
    workspace: str, *, sort_order: SortOrder | None = None, sorted_by: str | None = None, page_length: int = 200
) -> Listing[SinkInfo]:
    """Every sink of a workspace without entries, asked for page by page."""
    whole = list_sinks(workspace, sort_order=sort_order, sorted_by=sorted_by)
    return Listing(whole=whole, page_length=page_length, identity=lambda sink: sink.id)


def create_sink(
    workspace: str,
    *,
    label: str,
    description: str | None = None,
    tags: str | None = None,
    icon: Icon | str | None = None,
    entries: Sequence[NewEntry] = (),
    id: str | UnsetType = UNSET,  # noqa: A002 - the document's own name
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Sink]:
    """A new sink with its first entries, all or nothing."""
    return Request(
        operation=operations.CREATE_SINK,
        read=_SINK,
        names={"workspace": workspace},
        body=members(label=label, description=description, tags=tags, icon=icon, entries=entries, id=id),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def update_sink(
    workspace: str,
    sink: str,
    *,
    label: str | UnsetType = UNSET,
    description: str | UnsetType | None = UNSET,
    tags: str | UnsetType | None = UNSET,
    icon: Icon | str | UnsetType | None = UNSET,
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[None]:
    """Change what is given of a sink."""
    return Request(
        operation=operations.UPDATE_SINK,
        read=nothing,
        names={"workspace": workspace, "sink": sink},
        body=members(label=label, description=description, tags=tags, icon=icon),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def delete_sink(
    workspace: str, sink: str, *, if_match: str | None = None, client_id: str | None = None
) -> Request[None]:
    """Remove a sink with its entries."""
    return Request(
        operation=operations.DELETE_SINK,
        read=nothing,
        names={"workspace": workspace, "sink": sink},
        headers=headers(if_match=if_match, client_id=client_id),
    )

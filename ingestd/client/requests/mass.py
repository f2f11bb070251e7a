"""The bulk form of the mass update (contract M3, M8); only for a service that announces it with the header X-Bulk-Mass."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ingestd.client import operations
from ingestd.client.decoding import Mismatch
from ingestd.client.reading import many, one
from ingestd.client.records import BulkCounts, Entry, EntryChange, PartialResult
from ingestd.client.request import Request
from ingestd.client.requests.building import headers, query
from ingestd.wire import names

_ENTRIES = many(Entry | None)  # type: ignore[arg-type]  # a union is a type to msgspec
_COUNTS = one(BulkCounts)
_PARTIAL = one(PartialResult)


def mass_update(
    workspace: str,
    sink: str,
    items: Sequence[EntryChange],
    *,
    create: bool | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[tuple[Entry | None, ...]]:
    """Write and remove many entries, all or nothing; answers each item's final entry, None where it is gone."""
    return Request(
        operation=operations.MASS,
        read=_ENTRIES,
        names={"workspace": workspace, "sink": sink},
        query=query(create=create),
        body=msgspec.json.encode(items),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
        check=lambda entries: _expect(len(entries), items),
    )


def mass_update_minimal(
    workspace: str,
    sink: str,
    items: Sequence[EntryChange],
    *,
    create: bool | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[BulkCounts]:
    """The same, answered with numbers only, which is several times quicker."""
    return Request(
        operation=operations.MASS,
        read=_COUNTS,
        names={"workspace": workspace, "sink": sink},
        query=query(create=create),
        body=msgspec.json.encode(items),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id, prefer=names.RETURN_MINIMAL),
        check=lambda counts: _expect(counts.accepted, items),
    )


def mass_update_partial(
    workspace: str,
    sink: str,
    items: Sequence[EntryChange],
    *,
    create: bool | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[PartialResult]:
    """Each item for itself: the good ones are written, and of each it is told what became of it."""
    return Request(
        operation=operations.MASS,
        read=_PARTIAL,
        names={"workspace": workspace, "sink": sink},
        query=query(create=create, partial=True),
        body=msgspec.json.encode(items),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
        check=lambda result: _expect(len({one.index for one in result.results}), items),
    )


def _expect(accounted: int, items: Sequence[EntryChange]) -> None:
    if accounted != len(items):
        raise Mismatch(f"It accounts for {accounted} of {len(items)} items.")

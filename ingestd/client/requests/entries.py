"""Data sink entries one by one (contract DS4, DS8, DS9, DS10, DS11)."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.decoding import Mismatch, nothing, same_key
from ingestd.client.reading import versioned
from ingestd.client.records import Entry
from ingestd.client.request import Request
from ingestd.client.requests.building import headers, members, query

_ENTRY = versioned(Entry)


def get_entry(workspace: str, sink: str, key: str, *, if_none_match: str | None = None) -> Request[Entry]:
    """One entry, by its key; or by its id, where no entry has it for a key."""
    return Request(
        operation=operations.GET_ENTRY,
        read=_ENTRY,
        names={"workspace": workspace, "sink": sink, "key": key},
        headers=headers(if_none_match=if_none_match),
    )


def create_entry(
    workspace: str,
    sink: str,
    *,
    key: str,
    data_type: str,
    value: str | None = None,
    id: str | UnsetType = UNSET,  # noqa: A002 - the document's own name
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Entry]:
    """A new entry; a key that is there already is a ``Conflict``."""
    return Request(
        operation=operations.CREATE_ENTRY,
        read=_ENTRY,
        names={"workspace": workspace, "sink": sink},
        body=members(key=key, dataType=data_type, value=value, id=id),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
        check=lambda entry: _expect(entry, key),
    )


def update_entry(
    workspace: str,
    sink: str,
    key: str,
    *,
    value: str | UnsetType | None = UNSET,
    data_type: str | UnsetType = UNSET,
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[Entry]:
    """Change the value, the data type or both."""
    return Request(
        operation=operations.UPDATE_ENTRY,
        read=_ENTRY,
        names={"workspace": workspace, "sink": sink, "key": key},
        body=members(value=value, dataType=data_type),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def delete_entry(
    workspace: str, sink: str, key: str, *, if_match: str | None = None, client_id: str | None = None
) -> Request[None]:
    """Remove an entry."""
    return Request(
        operation=operations.DELETE_ENTRY,
        read=nothing,
        names={"workspace": workspace, "sink": sink, "key": key},
        headers=headers(if_match=if_match, client_id=client_id),
    )


def mass_update_entry(
    workspace: str,
    sink: str,
    *,
    key: str,
    value: str,
    data_type: str | UnsetType = UNSET,
    observed_at: datetime | UnsetType = UNSET,
    create: bool | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Entry]:
    """Set an entry's value, be it there or not; with ``create=False`` one that is not there is ``NotFound``.

    ``observed_at``: a value that is older than the stored one changes nothing, and the stored entry is answered.
    """
    return Request(
        operation=operations.MASS,
        read=_ENTRY,
        names={"workspace": workspace, "sink": sink},
        query=query(create=create),
        body=members(key=key, value=value, dataType=data_type, observedAt=observed_at),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
        check=lambda entry: _expect(entry, key),
    )


def mass_update_by_key(
    workspace: str,
    sink: str,
    key: str,
    *,
    value: str,
    data_type: str | UnsetType = UNSET,
    observed_at: datetime | UnsetType = UNSET,
    create: bool | None = None,
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Entry]:
    """The same with the key as the last segment of the path, which is the document's other reading (contract M1)."""
    return Request(
        operation=operations.MASS_BY_KEY,
        read=_ENTRY,
        names={"workspace": workspace, "sink": sink, "key": key},
        query=query(create=create),
        body=members(key=key, value=value, dataType=data_type, observedAt=observed_at),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
        check=lambda entry: _expect(entry, key),
    )


def _expect(entry: Entry, key: str) -> None:
    if not same_key(key, entry.key):
        raise Mismatch("It names another key.")

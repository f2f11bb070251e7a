"""The bulk form of the mass update (service contract M3, M8)."""

from __future__ import annotations

from datetime import datetime

from msgspec import UNSET, UnsetType

from ingestd.client.records.base import Record
from ingestd.client.records.sinks import Entry


class EntryChange(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An item: a key's new value, or its removal. ``observed_at``: an older one than the stored one's changes nothing."""

    key: str
    value: str | UnsetType = UNSET
    data_type: str | None = None
    id: str | None = None
    observed_at: datetime | None = None
    delete: bool = False


class BulkCounts(Record, frozen=True, kw_only=True):
    """What became of the items, in numbers; ``accepted`` is their sum."""

    accepted: int
    created: int
    updated: int
    unchanged: int
    deleted: int


class ItemMistake(Record, frozen=True, kw_only=True):
    """One mistake in an item; ``pointer`` is a JSON Pointer into the request's body."""

    pointer: str
    code: str
    detail: str


class ItemProblem(Record, frozen=True, kw_only=True):
    """Why an item was refused."""

    error: str = ""
    code: str = ""
    detail: str = ""
    errors: tuple[ItemMistake, ...] = ()


class ItemResult(Record, frozen=True, kw_only=True):
    """What became of the item at ``index`` (from 0): the entry, None where it was removed, or why it was refused."""

    index: int
    status: int
    entry: Entry | None = None
    error: ItemProblem | None = None


class PartialResult(Record, frozen=True, kw_only=True):
    """What became of each item by itself."""

    results: tuple[ItemResult, ...]
    succeeded: int
    failed: int

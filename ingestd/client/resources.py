"""The document's records, as far as the daemon uses them. Members that are not listed here are ignored."""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A data sink entry."""

    key: str
    value: str | None = None
    data_type: str | None = None
    id: str = ""


class Sink(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A data sink; ``entries`` is None in the list without entries."""

    id: str
    label: str = ""
    visible_id: str | None = None
    entries: tuple[Entry, ...] | None = None


class Workspace(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workspace."""

    id: str
    label: str = ""


class ItemError(msgspec.Struct, frozen=True, kw_only=True):
    """Why one item of a bulk request was refused."""

    title: str = ""
    detail: str = ""
    error: str = ""
    code: str = ""

    @property
    def words(self) -> str:
        """The service's words, most telling first."""
        return self.detail or self.title or self.error or self.code or "the service gives no reason"


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the item at ``index`` (from 0) of a bulk request."""

    index: int
    status: int
    error: ItemError | str | None = None

    @property
    def words(self) -> str:
        """Why it was refused."""
        if isinstance(self.error, str):
            return self.error
        return (self.error or ItemError()).words


class BulkResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a bulk mass-update: ``accepted`` items, and by item where that was asked for and is offered."""

    accepted: int
    results: tuple[ItemResult, ...] | None = None

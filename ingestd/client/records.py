"""The records in responses and requests of the service.

A member of the interface document is required unless the document calls it optional. A member that only the service contract
defines is None if the service does not support it. Numbers are as in JSON: 1 is an int, 1.0 a float. Unknown members are
ignored. The daemon reads only the members of the classes ``…Summary``, so a service may omit all other members.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

Number: TypeAlias = int | float


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record of the service."""


class Versioned(Record, frozen=True, kw_only=True, dict=True):
    """A record that has a version if it was read alone, not in a list."""

    @property
    def etag(self) -> str:
        """The version, for ``if_match`` and ``if_none_match``; empty in lists. Comparisons of records ignore the version."""
        tag: str = self.__dict__.get("etag", "")
        return tag

    def set_etag(self, etag: str) -> None:
        """Set the version of a record that was just read."""
        self.__dict__["etag"] = etag


class ProblemError(Record, frozen=True, kw_only=True):
    """One error in a request; ``pointer`` is a JSON Pointer into the request's body."""

    pointer: str
    code: str
    detail: str


class WorkspaceSummary(Versioned, frozen=True, kw_only=True):
    """The name of a workspace."""

    id: str
    label: str = ""


class Workspace(WorkspaceSummary, frozen=True, kw_only=True):
    """A workspace with the ids of everything in it."""

    label: str
    root_block: str
    created_at: datetime
    updated_at: datetime
    created_by: str
    blocks: tuple[str, ...]
    property_definitions: tuple[str, ...]
    property_instances: tuple[str, ...]
    attachments: tuple[str, ...]
    status_definitions: tuple[str, ...]
    status_instances: tuple[str, ...]
    status_options: tuple[str, ...]
    requirements_pages: tuple[str, ...]
    requirement_blocks: tuple[str, ...]
    reports: tuple[str, ...]
    report_blocks: tuple[str, ...]
    attributes: tuple[str, ...]
    interfaces: tuple[str, ...]
    bom_tables: tuple[str, ...]
    bom_columns: tuple[str, ...]
    code_blocks: tuple[str, ...]
    code_inputs: tuple[str, ...]
    code_outputs: tuple[str, ...]
    public_can_read_enabled: bool | None = None
    current_workspace_version: str | None = None
    exports_enabled: bool | None = None
    guests_enabled: bool | None = None
    statuses: tuple[str, ...] | None = None


class Block(Versioned, frozen=True, kw_only=True):
    """A block. ``parent_block`` of the root is empty. ``path``: the path from the root to the block itself."""

    id: str
    label: str
    description: str
    parent_block: str
    multiplicity: Number
    children: tuple[str, ...]
    pdm_enabled: bool
    property_groups: tuple[str, ...]
    preview_custom_link: str
    preview_source: str
    figures: tuple[str, ...]
    icon: str
    interfaces: tuple[str, ...]
    attachments: tuple[str, ...]
    external_links: tuple[str, ...]
    pdm_thumbnail: str
    block_statuses: tuple[str, ...]
    order_index: Number
    path: str
    type: tuple[str, ...]
    part_number: str | None = None
    instances: tuple[str, ...] | None = None
    workspace: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    created_by: str | None = None
    updated_by: str | None = None


class BlockTypes(Record, frozen=True, kw_only=True):
    """The response of the interface document to an update of a block."""

    type: tuple[str, ...]


class Icon(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An icon by its name. A request sends only the members that are not None."""

    source: str | None = None
    name: str | None = None
    color: str | None = None
    metadata: dict[str, Any] | None = None


class EntrySummary(Versioned, frozen=True, kw_only=True):
    """The content of a data sink entry."""

    key: str
    value: str | None = None
    data_type: str | None = None


class WrittenEntry(Versioned, frozen=True, kw_only=True):
    """A data sink entry in the response to its creation or change. A service may omit the value."""

    key: str
    value: str | UnsetType | None = UNSET
    data_type: str | None = None


class Entry(EntrySummary, frozen=True, kw_only=True):
    """A data sink entry."""

    id: str
    data_sink_id: str
    data_type: str
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str


class SinkSummary(Versioned, frozen=True, kw_only=True):
    """The id and the names of a data sink. ``entries`` is None in lists."""

    id: str
    label: str = ""
    visible_id: str | None = None
    entries: tuple[EntrySummary, ...] | None = None


class SinkInfo(SinkSummary, frozen=True, kw_only=True):
    """A data sink in a list, without its entries. ``icon`` is a text if the service returns a text."""

    label: str
    workspace_id: str
    description: str | None = None
    tags: str | None = None
    icon: Icon | str | None = None
    visible_id: str
    serial: Number
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str


class Sink(SinkInfo, frozen=True, kw_only=True):
    """A data sink with its entries."""

    entries: tuple[Entry, ...]


class NewEntry(Record, frozen=True, kw_only=True):
    """An entry of a new sink."""

    key: str
    data_type: str
    value: str | None = None
    id: str | UnsetType = UNSET


class EntryChange(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A new value of an entry, or its removal. If ``observed_at`` is before the stored time, nothing is changed."""

    key: str
    value: str | UnsetType = UNSET
    data_type: str | None = None
    id: str | None = None
    observed_at: datetime | None = None
    delete: bool = False


class BulkCounts(Record, frozen=True, kw_only=True):
    """The number of items by result; ``accepted`` is the sum of the other numbers."""

    accepted: int
    created: int
    updated: int
    unchanged: int
    deleted: int


class ItemProblem(Record, frozen=True, kw_only=True):
    """Why an item was rejected."""

    title: str = ""
    error: str = ""
    code: str = ""
    detail: str = ""
    errors: tuple[ProblemError, ...] = ()

    @property
    def reason(self) -> str:
        """The most specific text that the service gives."""
        return self.detail or self.title or self.error or self.code or "the service gives no reason"


class BulkItemResult(Record, frozen=True, kw_only=True):
    """The result of the item at ``index`` (from 0) of a bulk request."""

    index: int
    status: int
    error: ItemProblem | str | None = None

    @property
    def reason(self) -> str:
        """Why the service rejected the item."""
        return self.error if isinstance(self.error, str) else (self.error or ItemProblem()).reason


class ItemResult(BulkItemResult, frozen=True, kw_only=True):
    """The result of an item: its entry (None if the entry was removed), or why the item was rejected."""

    entry: Entry | None = None
    error: ItemProblem | None = None


class PartialResult(Record, frozen=True, kw_only=True):
    """The result of each item."""

    results: tuple[ItemResult, ...]
    succeeded: int
    failed: int


class BulkResult(Record, frozen=True, kw_only=True):
    """The result of a bulk update: the number of accepted items, and the result of each item if the service returns results.

    Services return the number, the ``entries`` or the ``results``. `read_bulk` always sets the number.
    """

    accepted: int = 0
    entries: tuple[EntrySummary, ...] | None = None
    results: tuple[BulkItemResult, ...] | None = None


class OAuthConnection(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The OAuth server from which deliveries get their token (client credentials). Responses never have ``client_secret``."""

    token_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    audience: str | None = None

    def __repr__(self) -> str:
        return f"OAuthConnection(client_id={self.client_id!r})"


class Webhook(Versioned, frozen=True, kw_only=True):
    """A registered receiver. ``signing_secret`` is masked for keys that may only read.

    ``repr`` hides the secret, the headers, and the address, which may contain a password.
    """

    id: str
    label: str
    url: str
    signing_secret: str
    headers: tuple[str, ...]
    data_events: tuple[str, ...]
    oauth_connection: OAuthConnection
    created_by: str
    created_at: datetime
    updated_at: datetime
    updated_by: str | None = None
    enabled: bool | None = None
    disabled_reason: str | None = None
    workspace_ids: tuple[str, ...] | None = None
    ignore_client_ids: tuple[str, ...] | None = None
    coalesce: bool | None = None
    in_order: bool | None = None
    batch_entries: bool | None = None
    unknown_data_events: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"Webhook(id={self.id!r}, label={self.label!r}, enabled={self.enabled!r})"

"""The operations of the interface document, for every client: each declares its path, its parameters and its result.

The operations have the same names as in the service. Ids of sinks are UUIDs or visible ids (``SNK-1``). A parameter that is
not given (``UNSET``) is not sent, and the record's member does not change; None removes the value. With ``if_match``, a record
is changed only if it has this version (its ``etag``). ``if_none_match`` raises ``NotModified`` if the record still has this
version. If a request is repeated within a day with the same ``idempotency_key``, the service repeats its response and changes
nothing. ``client_id`` replaces the id of the client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ingestd.client.bodies import check_count, check_indexes, check_key
from ingestd.client.method_options import BlockMembers, ListOptions, MassEntryOptions, WebhookMembers, WriteOptions
from ingestd.client.methods import Arguments, Declaration
from ingestd.client.readers import read_any, read_created_id
from ingestd.client.records import (
    Block,
    BlockTypes,
    BulkCounts,
    Entry,
    EntryChange,
    Icon,
    NewEntry,
    Number,
    PartialResult,
    Sink,
    SinkInfo,
    Webhook,
    Workspace,
)
from ingestd.client.request import ApiOperation, HttpMethod, Request
from ingestd.wire.names import RETURN_MINIMAL, RETURN_REPRESENTATION

_WORKSPACE = "/v1/workspace/{workspace}"
_SINKS = f"{_WORKSPACE}/data-sink"
_SINK = f"{_SINKS}/{{sink}}"
_ENTRY = f"{_SINK}/{{key}}"
_MASS = f"{_SINK}/mass"
_BLOCKS = f"{_WORKSPACE}/blocks"
_BLOCK = f"{_BLOCKS}/{{block}}"
_FILE = "/v1/cloud-storage/{file}"
_METADATA = "/v1/cloud-storage/metadata/{file}"
_WEBHOOK = "/v1/webhooks/{webhook}"


def _read_block_types(body: bytes, _headers: Mapping[str, str]) -> tuple[str, ...]:
    return msgspec.json.decode(body, type=BlockTypes).type


def _read_metadata(body: bytes, _headers: Mapping[str, str]) -> dict[str, Any]:
    # The interface document lists "no content" for this response, too.
    return msgspec.json.decode(body, type=dict[str, Any]) if body.strip() else {}


_BULK = Declaration(name="data_sinks.mass", method="POST", path=_MASS, body="items")


def _same_key(entry: Entry, given: Arguments) -> None:
    check_key(entry.key, given["key"])


def _each_index(found: PartialResult, given: Arguments) -> None:
    check_indexes((one.index for one in found.results), len(given["items"]))


class ServiceMethods:
    """All methods that both clients have.

    ``filters`` of workspaces: a part of the label, or a mapping like ``{"label": {"startsWith": "Rover"}}`` (contract W2).
    ``parent_block`` and ``type`` select the blocks below a block, or the blocks of a type. ``search`` selects webhooks by label
    and address. A service that accepts bulk updates announces them in the header X-Bulk-Mass. A missing file is ``Forbidden``.
    """

    @Declaration(name="workspaces.list", method="GET", path="/v1/workspace")
    def list_workspaces(
        self, *, filters: str | Mapping[str, Any] | None = None, **options: Unpack[ListOptions]
    ) -> tuple[Workspace, ...]:
        """Return the workspaces that the key may read; with ``take`` or ``skip``, a part of the list."""

    @Declaration(name="workspaces.get", method="GET", path=_WORKSPACE)
    def get_workspace(self, workspace: str, *, if_none_match: str | None = None) -> Workspace:
        """Return one workspace."""

    @Declaration(name="workspaces.create", method="POST", path="/v1/workspace")
    def create_workspace(
        self,
        label: str,
        *,
        public_can_read_enabled: bool | UnsetType = UNSET,
        current_workspace_version: str | UnsetType = UNSET,
        exports_enabled: bool | UnsetType = UNSET,
        guests_enabled: bool | UnsetType = UNSET,
        statuses: Sequence[str] | UnsetType = UNSET,
        id: str | UnsetType = UNSET,
        **options: Unpack[WriteOptions],
    ) -> Workspace:
        """Create a workspace with its root block. Labels are not unique.

        With an ``idempotency_key`` the request can be repeated safely.
        """

    @Declaration(name="workspaces.update", method="PATCH", path=_WORKSPACE)
    def update_workspace(
        self,
        workspace: str,
        *,
        label: str | UnsetType = UNSET,
        root_block: Mapping[str, Any] | UnsetType = UNSET,
        **options: Unpack[WriteOptions],
    ) -> Workspace:
        """Change the label or the root block. A ``root_block`` with the id of another block makes that block the root."""

    @Declaration(name="workspaces.delete", method="DELETE", path=_WORKSPACE)
    def delete_workspace(self, workspace: str, **options: Unpack[WriteOptions]) -> Workspace:
        """Remove a workspace with everything in it. Return the removed workspace."""

    @Declaration(name="blocks.list", method="GET", path=_BLOCKS)
    def list_blocks(
        self,
        workspace: str,
        *,
        parent_block: str | None = None,
        type: str | None = None,
        **options: Unpack[ListOptions],
    ) -> tuple[Block, ...]:
        """Return the blocks of a workspace, the root first, then by depth and order.

        With ``take`` or ``skip``, return a part of the list.
        """

    @Declaration(name="blocks.get", method="GET", path=_BLOCK)
    def get_block(self, workspace: str, block: str, *, if_none_match: str | None = None) -> Block:
        """Return one block."""

    @Declaration(name="blocks.create", method="POST", path=_BLOCKS, also_in_body=["workspace"])
    def create_block(self, workspace: str, *, id: str | UnsetType = UNSET, **options: Unpack[BlockMembers]) -> Block:
        """Create a block, by default below the root."""

    @Declaration(name="blocks.delete", method="DELETE", path=_BLOCK)
    def delete_block(
        self, workspace: str, block: str, *, force: bool | None = None, **options: Unpack[WriteOptions]
    ) -> Block:
        """Remove a block, and with ``force`` its children. Return the removed block.

        Without ``force``, the removal of a block with children raises ``Conflict``.
        """

    @Declaration(name="blocks.update", method="PATCH", path=_BLOCK, read=_read_block_types)
    def update_block_types(
        self, workspace: str, block: str, *, type: Sequence[str] | UnsetType = UNSET, **options: Unpack[WriteOptions]
    ) -> tuple[str, ...]:
        """Change and return a block's types, the only change of a block that the interface document defines."""

    @Declaration(name="blocks.update", method="PATCH", path=_BLOCK, prefer=RETURN_REPRESENTATION)
    def update_block(
        self, workspace: str, block: str, *, order_index: Number | UnsetType = UNSET, **options: Unpack[BlockMembers]
    ) -> Block:
        """Change the given members of a block and return it (contract B7). ``parent_block`` moves the block."""

    @Declaration(name="data_sinks.get", method="GET", path=_SINK)
    def get_sink(self, workspace: str, sink: str, *, if_none_match: str | None = None) -> Sink:
        """Return a sink with all its entries in memory."""

    @Declaration(name="data_sinks.list_whole", method="GET", path=_SINKS)
    def get_sinks(self, workspace: str, **options: Unpack[ListOptions]) -> tuple[Sink, ...]:
        """Return every sink of a workspace with all its entries.

        With ``take`` or ``skip``, return a part of the list.
        """

    @Declaration(name="data_sinks.list", method="GET", path=f"{_SINKS}/list")
    def list_sinks(self, workspace: str, **options: Unpack[ListOptions]) -> tuple[SinkInfo, ...]:
        """Return every sink of a workspace without entries, by default in the order of the serials.

        With ``take`` or ``skip``, return a part of the list.
        """

    @Declaration(name="data_sinks.create", method="POST", path=_SINKS)
    def create_sink(
        self,
        workspace: str,
        *,
        label: str,
        description: str | None = None,
        tags: str | None = None,
        icon: Icon | str | None = None,
        entries: Sequence[NewEntry] = (),
        id: str | UnsetType = UNSET,
        **options: Unpack[WriteOptions],
    ) -> Sink:
        """Create a sink with its first entries. If an entry is refused, no sink is created."""

    @Declaration(name="data_sinks.update", method="PATCH", path=_SINK)
    def update_sink(
        self,
        workspace: str,
        sink: str,
        *,
        label: str | UnsetType = UNSET,
        description: str | UnsetType | None = UNSET,
        tags: str | UnsetType | None = UNSET,
        icon: Icon | str | UnsetType | None = UNSET,
        **options: Unpack[WriteOptions],
    ) -> None:
        """Change the given members of a sink."""

    @Declaration(name="data_sinks.delete", method="DELETE", path=_SINK)
    def delete_sink(self, workspace: str, sink: str, **options: Unpack[WriteOptions]) -> None:
        """Remove a sink with its entries."""

    @Declaration(name="data_sinks.get_entry", method="GET", path=_ENTRY)
    def get_entry(self, workspace: str, sink: str, key: str, *, if_none_match: str | None = None) -> Entry:
        """Return the entry with this key. If no entry has this key, return the entry with this id."""

    @Declaration(name="data_sinks.create_entry", method="POST", path=_SINK, check=_same_key)
    def create_entry(
        self,
        workspace: str,
        sink: str,
        *,
        key: str,
        data_type: str,
        value: str | None = None,
        id: str | UnsetType = UNSET,
        **options: Unpack[WriteOptions],
    ) -> Entry:
        """Create an entry. An existing key raises ``Conflict``."""

    @Declaration(name="data_sinks.update_entry", method="PATCH", path=_ENTRY)
    def update_entry(
        self,
        workspace: str,
        sink: str,
        key: str,
        *,
        value: str | UnsetType | None = UNSET,
        data_type: str | UnsetType = UNSET,
        **options: Unpack[WriteOptions],
    ) -> Entry:
        """Change the value of an entry, its data type, or both."""

    @Declaration(name="data_sinks.delete_entry", method="DELETE", path=_ENTRY)
    def delete_entry(self, workspace: str, sink: str, key: str, **options: Unpack[WriteOptions]) -> None:
        """Remove an entry."""

    @Declaration(name="data_sinks.mass", method="POST", path=_MASS, check=_same_key)
    def mass_update_entry(
        self, workspace: str, sink: str, *, key: str, value: str, **options: Unpack[MassEntryOptions]
    ) -> Entry:
        """Set an entry's value, and create the entry if it does not exist."""

    @replace(_BULK, check=lambda entries, given: check_count(len(entries), len(given["items"])))
    def mass_update(
        self, workspace: str, sink: str, items: Sequence[EntryChange], **options: Unpack[WriteOptions]
    ) -> tuple[Entry | None, ...]:
        """Write and remove all given entries, or none. Return the entry of each item; None for a removed entry."""

    @replace(_BULK, prefer=RETURN_MINIMAL, check=lambda found, given: check_count(found.accepted, len(given["items"])))
    def mass_update_minimal(
        self, workspace: str, sink: str, items: Sequence[EntryChange], **options: Unpack[WriteOptions]
    ) -> BulkCounts:
        """Write and remove all given entries, or none. Return only counts, which is several times faster."""

    @replace(_BULK, query={"partial": "true"}, check=_each_index)
    def mass_update_partial(
        self, workspace: str, sink: str, items: Sequence[EntryChange], **options: Unpack[WriteOptions]
    ) -> PartialResult:
        """Write and remove the valid entries. Return the result of each item."""

    @Declaration(name="cloud_storage.update", method="PATCH", path=_FILE)
    def update_file(
        self,
        file: str,
        *,
        file_name: str | UnsetType = UNSET,
        content_type: str | UnsetType | None = UNSET,
        description: str | UnsetType | None = UNSET,
        tags: str | UnsetType | None = UNSET,
        **options: Unpack[WriteOptions],
    ) -> None:
        """Change the given members of a file's storage information."""

    @Declaration(name="cloud_storage.delete", method="DELETE", path=_FILE)
    def delete_file(self, file: str, *, workspace_id: str, **options: Unpack[WriteOptions]) -> None:
        """Remove a file of a workspace."""

    @Declaration(name="cloud_storage.get_metadata", method="GET", path=_METADATA, read=_read_metadata)
    def get_metadata(self, file: str, *, if_none_match: str | None = None) -> dict[str, Any]:
        """Return the metadata of a file. The version for ``if_none_match`` is the version of the file."""

    @Declaration(name="cloud_storage.replace_metadata", method="PUT", path=_METADATA, body="metadata")
    def replace_metadata(self, file: str, metadata: Mapping[str, Any], **options: Unpack[WriteOptions]) -> None:
        """Replace the whole metadata of a file."""

    @Declaration(name="cloud_storage.retry_conversion", method="POST", path="/v1/cloud-storage/retry-conversion/{file}")
    def retry_conversion(self, file: str, *, force: bool | UnsetType = UNSET, **options: Unpack[WriteOptions]) -> None:
        """Convert a file again. While a conversion of the file runs, this needs ``force``."""

    @Declaration(name="webhooks.list", method="GET", path="/v1/webhooks")
    def list_webhooks(self, *, search: str | None = None, **options: Unpack[ListOptions]) -> tuple[Webhook, ...]:
        """Return the newest ten webhooks by default, or the given part of the list."""

    @Declaration(name="webhooks.get", method="GET", path=_WEBHOOK)
    def get_webhook(self, webhook: str, *, if_none_match: str | None = None) -> Webhook:
        """Return one webhook."""

    @Declaration(name="webhooks.create", method="POST", path="/v1/webhooks", read=read_created_id)
    def create_webhook(self, url: str, *, id: str | UnsetType = UNSET, **options: Unpack[WebhookMembers]) -> str | None:
        """Create a webhook. Return its id, or None if the service does not give it. ``get_webhook`` shows its secret."""

    @Declaration(name="webhooks.update", method="PATCH", path=_WEBHOOK)
    def update_webhook(
        self, webhook: str, *, url: str | UnsetType = UNSET, **options: Unpack[WebhookMembers]
    ) -> Webhook:
        """Change the given members of a webhook. A given list replaces the stored list."""

    @Declaration(name="webhooks.delete", method="DELETE", path=_WEBHOOK)
    def delete_webhook(self, webhook: str, **options: Unpack[WriteOptions]) -> Webhook:
        """Remove a webhook with its pending deliveries. Return the removed webhook."""

    @Declaration(name="webhooks.rotate_secret", method="POST", path=f"{_WEBHOOK}/rotate-secret", optional_body=True)
    def rotate_webhook_secret(
        self, webhook: str, *, grace_period_seconds: int | UnsetType = UNSET, **options: Unpack[WriteOptions]
    ) -> Webhook:
        """Replace the signing secret; the response contains the new secret. By default, the old secret also signs for a day."""


def extension(method: HttpMethod, path: str, **parts: Any) -> Request[Any]:
    """Return a request for an operation without a method, for ``send`` of a client. The response's value is JSON, or None.

    ``parts``: ``names`` of the placeholders in ``path``, ``query``, ``body`` and ``headers``, as in `Request`.
    """
    operation = ApiOperation(name=f"{method} {path}", method=method, path=path)
    return Request(operation=operation, read=read_any, **parts)

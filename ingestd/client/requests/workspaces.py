"""Workspaces (contract WS1, WS2, WS3, WS4, WS5) and their blocks (contract BL1, BL2, BL3, BL4, BL5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import msgspec
from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.declarations import ChangeOptions, CreateOptions, IterOptions, ListOptions, declare, paged
from ingestd.client.readers import one_or_many
from ingestd.client.records import Block, Number, Workspace
from ingestd.client.records.workspaces import BlockTypes
from ingestd.wire import names


class BlockMembers(TypedDict, total=False):
    """The members that a block is created with and that can be changed."""

    label: str | UnsetType
    description: str | UnsetType
    part_number: str | UnsetType
    parent_block: str | UnsetType | None
    multiplicity: Number | UnsetType
    pdm_enabled: bool | UnsetType
    property_groups: Sequence[str] | UnsetType
    instances: Sequence[str] | UnsetType
    preview_custom_link: str | UnsetType
    preview_source: str | UnsetType
    figures: Sequence[str] | UnsetType
    icon: str | UnsetType
    type: Sequence[str] | UnsetType
    attachments: Sequence[str] | UnsetType
    external_links: Sequence[str] | UnsetType
    pdm_thumbnail: str | UnsetType
    block_statuses: Sequence[str] | UnsetType


class CreateBlockOptions(BlockMembers, CreateOptions, total=False):
    """Parameters of a new block."""

    id: str | UnsetType


class ChangeBlockOptions(BlockMembers, ChangeOptions, total=False):
    """Parameters of a change of a block."""

    order_index: Number | UnsetType


def _read_block_types(body: bytes, _headers: Mapping[str, str]) -> tuple[str, ...]:
    return msgspec.json.decode(body, type=BlockTypes).type


class WorkspaceMethods:
    """Workspaces and their blocks.

    ``filters``: a part of the label, or a mapping like ``{"label": {"startsWith": "Rover"}}`` (contract W2).
    ``parent_block`` and ``type`` select the blocks below a block, or of a type.
    """

    @declare(operations.LIST_WORKSPACES, read=one_or_many(Workspace))
    def list_workspaces(
        self, *, filters: str | Mapping[str, Any] | None = None, **options: Unpack[ListOptions]
    ) -> tuple[Workspace, ...]:
        """Return the workspaces that the key may read; with ``take`` or ``skip``, a part of them."""

    @paged(list_workspaces, page_length=100)
    def iter_workspaces(
        self, *, filters: str | Mapping[str, Any] | None = None, **options: Unpack[IterOptions]
    ) -> Iterator[Workspace]:
        """Return the workspaces that the key may read, page by page."""

    @declare(operations.GET_WORKSPACE)
    def get_workspace(self, workspace: str, *, if_none_match: str | None = None) -> Workspace:
        """Return one workspace."""

    @declare(operations.CREATE_WORKSPACE)
    def create_workspace(
        self,
        label: str,
        *,
        public_can_read_enabled: bool | UnsetType = UNSET,
        current_workspace_version: str | UnsetType = UNSET,
        exports_enabled: bool | UnsetType = UNSET,
        guests_enabled: bool | UnsetType = UNSET,
        statuses: Sequence[str] | UnsetType = UNSET,
        id: str | UnsetType = UNSET,  # noqa: A002 - the name in the interface document
        **options: Unpack[CreateOptions],
    ) -> Workspace:
        """Create a workspace with its root block. Labels are not unique.

        With an ``idempotency_key`` the request can be repeated safely.
        """

    @declare(operations.UPDATE_WORKSPACE)
    def update_workspace(
        self,
        workspace: str,
        *,
        label: str | UnsetType = UNSET,
        root_block: Mapping[str, Any] | UnsetType = UNSET,
        **options: Unpack[ChangeOptions],
    ) -> Workspace:
        """Change the label or the root block. A ``root_block`` with the id of another block makes that block the root."""

    @declare(operations.DELETE_WORKSPACE)
    def delete_workspace(self, workspace: str, **options: Unpack[ChangeOptions]) -> Workspace:
        """Remove a workspace with everything in it. Returns the removed workspace."""

    @declare(operations.LIST_BLOCKS, read=one_or_many(Block))
    def list_blocks(
        self,
        workspace: str,
        *,
        parent_block: str | None = None,
        type: str | None = None,  # noqa: A002 - the name in the interface document
        **options: Unpack[ListOptions],
    ) -> tuple[Block, ...]:
        """Return the blocks of a workspace, the root first, then by depth and order.

        With ``take`` or ``skip``, return a part of them.
        """

    @paged(list_blocks, page_length=500)
    def iter_blocks(
        self,
        workspace: str,
        *,
        parent_block: str | None = None,
        type: str | None = None,  # noqa: A002 - the name in the interface document
        **options: Unpack[IterOptions],
    ) -> Iterator[Block]:
        """Return the blocks of a workspace, read page by page."""

    @declare(operations.GET_BLOCK)
    def get_block(self, workspace: str, block: str, *, if_none_match: str | None = None) -> Block:
        """Return one block."""

    @declare(operations.CREATE_BLOCK, also_in_body=["workspace"])
    def create_block(self, workspace: str, **options: Unpack[CreateBlockOptions]) -> Block:
        """Create a block, by default below the root."""

    @declare(operations.DELETE_BLOCK)
    def delete_block(
        self, workspace: str, block: str, *, force: bool | None = None, **options: Unpack[ChangeOptions]
    ) -> Block:
        """Remove a block, and with ``force`` its children. Return the block.

        Without ``force``, the removal of a block with children raises ``Conflict``.
        """

    @declare(operations.UPDATE_BLOCK, read=_read_block_types)
    def update_block_types(
        self,
        workspace: str,
        block: str,
        *,
        type: Sequence[str] | UnsetType = UNSET,  # noqa: A002 - the name in the interface document
        **options: Unpack[ChangeOptions],
    ) -> tuple[str, ...]:
        """Change and return a block's types, the only change of a block that the interface document has."""

    @declare(operations.UPDATE_BLOCK, prefer=names.RETURN_REPRESENTATION)
    def update_block(self, workspace: str, block: str, **options: Unpack[ChangeBlockOptions]) -> Block:
        """Change the given members of a block and return it (contract B7). ``parent_block`` moves the block."""

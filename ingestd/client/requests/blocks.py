"""Blocks (contract BL1, BL2, BL3, BL4, BL5)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from ingestd.client import operations
from ingestd.client.paging import Listing
from ingestd.client.reading import mapped, one, one_or_many, versioned
from ingestd.client.records import Block, Number
from ingestd.client.records.blocks import BlockTypes
from ingestd.client.request import Request
from ingestd.client.requests.building import SortOrder, headers, members, query
from ingestd.wire import names

_BLOCK = versioned(Block)
_BLOCKS = one_or_many(Block)
_TYPES = mapped(one(BlockTypes), lambda answer: answer.type)


def list_blocks(
    workspace: str,
    *,
    parent_block: str | None = None,
    type: str | None = None,  # noqa: A002 - the document's own name
    take: int | None = None,
    skip: int | None = None,
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
) -> Request[tuple[Block, ...]]:
    """The blocks of a workspace, the root first, then by depth and order; those below a parent or of a type only."""
    return Request(
        operation=operations.LIST_BLOCKS,
        read=_BLOCKS,
        names={"workspace": workspace},
        query=query(
            parentBlock=parent_block, type=type, take=take, skip=skip, sortOrder=sort_order, sortedBy=sorted_by
        ),
    )


def iter_blocks(
    workspace: str,
    *,
    parent_block: str | None = None,
    type: str | None = None,  # noqa: A002 - the document's own name
    sort_order: SortOrder | None = None,
    sorted_by: str | None = None,
    page_length: int = 500,
) -> Listing[Block]:
    """The same, asked for page by page."""
    whole = list_blocks(workspace, parent_block=parent_block, type=type, sort_order=sort_order, sorted_by=sorted_by)
    return Listing(whole=whole, page_length=page_length, identity=lambda block: block.id)


def get_block(workspace: str, block: str, *, if_none_match: str | None = None) -> Request[Block]:
    """One block."""
    return Request(
        operation=operations.GET_BLOCK,
        read=_BLOCK,
        names={"workspace": workspace, "block": block},
        headers=headers(if_none_match=if_none_match),
    )


def create_block(
    workspace: str,
    *,
    label: str | UnsetType = UNSET,
    description: str | UnsetType = UNSET,
    part_number: str | UnsetType = UNSET,
    parent_block: str | UnsetType = UNSET,
    multiplicity: Number | UnsetType = UNSET,
    pdm_enabled: bool | UnsetType = UNSET,
    property_groups: Sequence[str] | UnsetType = UNSET,
    instances: Sequence[str] | UnsetType = UNSET,
    preview_custom_link: str | UnsetType = UNSET,
    preview_source: str | UnsetType = UNSET,
    figures: Sequence[str] | UnsetType = UNSET,
    icon: str | UnsetType = UNSET,
    type: Sequence[str] | UnsetType = UNSET,  # noqa: A002 - the document's own name
    attachments: Sequence[str] | UnsetType = UNSET,
    external_links: Sequence[str] | UnsetType = UNSET,
    pdm_thumbnail: str | UnsetType = UNSET,
    block_statuses: Sequence[str] | UnsetType = UNSET,
    id: str | UnsetType = UNSET,  # noqa: A002 - the document's own name
    idempotency_key: str | None = None,
    client_id: str | None = None,
) -> Request[Block]:
    """A new block, below the root where no parent is named."""
    return Request(
        operation=operations.CREATE_BLOCK,
        read=_BLOCK,
        names={"workspace": workspace},
        body=members(
            workspace=workspace,
            label=label,
            description=description,
            partNumber=part_number,
            parentBlock=parent_block,
            multiplicity=multiplicity,
            pdmEnabled=pdm_enabled,
            propertyGroups=property_groups,
            instances=instances,
            previewCustomLink=preview_custom_link,
            previewSource=preview_source,
            figures=figures,
            icon=icon,
            type=type,
            attachments=attachments,
            externalLinks=external_links,
            pdmThumbnail=pdm_thumbnail,
            blockStatuses=block_statuses,
            id=id,
        ),
        headers=headers(idempotency_key=idempotency_key, client_id=client_id),
    )


def delete_block(
    workspace: str, block: str, *, force: bool | None = None, if_match: str | None = None, client_id: str | None = None
) -> Request[Block]:
    """Remove a block; answers what it was. With ``force`` all below it goes, too; without, children are a ``Conflict``."""
    return Request(
        operation=operations.DELETE_BLOCK,
        read=_BLOCK,
        names={"workspace": workspace, "block": block},
        query=query(force=force),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def update_block_types(
    workspace: str,
    block: str,
    *,
    type: Sequence[str] | UnsetType = UNSET,  # noqa: A002 - the document's own name
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[tuple[str, ...]]:
    """Change a block's types and answer them: all that the document knows of changing a block."""
    return Request(
        operation=operations.UPDATE_BLOCK,
        read=_TYPES,
        names={"workspace": workspace, "block": block},
        body=members(type=type),
        headers=headers(if_match=if_match, client_id=client_id),
    )


def update_block(
    workspace: str,
    block: str,
    *,
    label: str | UnsetType = UNSET,
    description: str | UnsetType = UNSET,
    part_number: str | UnsetType = UNSET,
    parent_block: str | UnsetType | None = UNSET,
    order_index: Number | UnsetType = UNSET,
    multiplicity: Number | UnsetType = UNSET,
    pdm_enabled: bool | UnsetType = UNSET,
    property_groups: Sequence[str] | UnsetType = UNSET,
    instances: Sequence[str] | UnsetType = UNSET,
    preview_custom_link: str | UnsetType = UNSET,
    preview_source: str | UnsetType = UNSET,
    figures: Sequence[str] | UnsetType = UNSET,
    icon: str | UnsetType = UNSET,
    type: Sequence[str] | UnsetType = UNSET,  # noqa: A002 - the document's own name
    attachments: Sequence[str] | UnsetType = UNSET,
    external_links: Sequence[str] | UnsetType = UNSET,
    pdm_thumbnail: str | UnsetType = UNSET,
    block_statuses: Sequence[str] | UnsetType = UNSET,
    if_match: str | None = None,
    client_id: str | None = None,
) -> Request[Block]:
    """Change what is given of a block and answer the whole of it (contract B7); ``parent_block`` moves it."""
    return Request(
        operation=operations.UPDATE_BLOCK,
        read=_BLOCK,
        names={"workspace": workspace, "block": block},
        body=members(
            label=label,
            description=description,
            partNumber=part_number,
            parentBlock=parent_block,
            orderIndex=order_index,
            multiplicity=multiplicity,
            pdmEnabled=pdm_enabled,
            propertyGroups=property_groups,
            instances=instances,
            previewCustomLink=preview_custom_link,
            previewSource=preview_source,
            figures=figures,
            icon=icon,
            type=type,
            attachments=attachments,
            externalLinks=external_links,
            pdmThumbnail=pdm_thumbnail,
            blockStatuses=block_statuses,
        ),
        headers=headers(if_match=if_match, client_id=client_id, prefer=names.RETURN_REPRESENTATION),
    )

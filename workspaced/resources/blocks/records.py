"""Records of blocks, with the additional members of contract B3."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from workspaced.core.json_schema import RawNumber, RawStrings, Timestamp, Uuid
from workspaced.core.records import record_from
from workspaced.resources.blocks.values import PlacedBlock


class BlockRecord(msgspec.Struct, rename="camel"):
    """A block."""

    id: Uuid
    label: str
    description: str
    parent_block: Annotated[str, Meta(description="Empty for the root block.")]
    multiplicity: RawNumber
    children: tuple[str, ...]
    pdm_enabled: bool
    property_groups: RawStrings
    preview_custom_link: str
    preview_source: str
    figures: RawStrings
    icon: str
    interfaces: tuple[str, ...]
    attachments: RawStrings
    external_links: RawStrings
    pdm_thumbnail: str
    block_statuses: RawStrings
    order_index: float
    path: str
    type: RawStrings
    part_number: str
    instances: RawStrings
    workspace: Uuid
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    updated_by: str


class BlockTypesRecord(msgspec.Struct):
    """The types of a block."""

    type: RawStrings


def block_record(placed: PlacedBlock) -> BlockRecord:
    """Return the record of a block, with its parent, path and children."""
    block = placed.block
    return record_from(
        BlockRecord,
        block,
        parent_block=block.parent_id or "",
        children=placed.children,
        interfaces=(),
        order_index=_number(block.order_index),
        path="/" + "/".join(placed.path),
        workspace=block.workspace_id,
    )


def _number(value: float) -> int | float:
    """Return the number, without ``.0`` if it is a whole number."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value

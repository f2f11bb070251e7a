"""A block as the document shows it, with the additional members (contract B3)."""

from __future__ import annotations

import msgspec

from workspaced.core.timestamps import stamp
from workspaced.resources.blocks.values import Placed


class BlockRecord(msgspec.Struct, rename="camel"):
    """The document's block; what is JSON already is passed on as it is."""

    id: str
    label: str
    description: str
    parent_block: str
    multiplicity: msgspec.Raw
    children: tuple[str, ...]
    pdm_enabled: bool
    property_groups: msgspec.Raw
    preview_custom_link: str
    preview_source: str
    figures: msgspec.Raw
    icon: str
    interfaces: tuple[str, ...]
    attachments: msgspec.Raw
    external_links: msgspec.Raw
    pdm_thumbnail: str
    block_statuses: msgspec.Raw
    order_index: int | float
    path: str
    type: msgspec.Raw
    part_number: str
    instances: msgspec.Raw
    workspace: str
    created_at: str
    updated_at: str
    created_by: str
    updated_by: str


def record(placed: Placed) -> BlockRecord:
    """A block."""
    block = placed.block
    return BlockRecord(
        id=block.id,
        label=block.label,
        description=block.description,
        parent_block=block.parent_id or "",
        multiplicity=_raw(block.multiplicity),
        children=placed.children,
        pdm_enabled=bool(block.pdm_enabled),
        property_groups=_raw(block.property_groups),
        preview_custom_link=block.preview_custom_link,
        preview_source=block.preview_source,
        figures=_raw(block.figures),
        icon=block.icon,
        interfaces=(),
        attachments=_raw(block.attachments),
        external_links=_raw(block.external_links),
        pdm_thumbnail=block.pdm_thumbnail,
        block_statuses=_raw(block.block_statuses),
        order_index=_number(block.order_index),
        path="/" + "/".join(placed.path),
        type=_raw(block.type),
        part_number=block.part_number,
        instances=_raw(block.instances),
        workspace=block.workspace_id,
        created_at=stamp(block.created_at),
        updated_at=stamp(block.updated_at),
        created_by=block.created_by,
        updated_by=block.updated_by,
    )


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _number(value: float) -> int | float:
    """A whole number without its ``.0``, as clients count."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value

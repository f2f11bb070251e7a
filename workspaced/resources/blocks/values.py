"""What the rules hand to the store, and what the store hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from msgspec import UnsetType


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a block holds besides its place in the tree, with the defaults of what was not given (contract G4, B5).

    Lists are compact JSON; ``multiplicity`` is the text of a JSON number.
    """

    label: str = ""
    description: str = ""
    part_number: str = ""
    multiplicity: str = "1"
    pdm_enabled: bool = False
    property_groups: str = "[]"
    instances: str = "[]"
    preview_custom_link: str = ""
    preview_source: str = ""
    figures: str = "[]"
    icon: str = ""
    attachments: str = "[]"
    external_links: str = "[]"
    pdm_thumbnail: str = ""
    block_statuses: str = "[]"
    type: str = "[]"


Given: TypeAlias = Mapping[str, str | bool]
"""Some fields of `Content`, by name."""

MEMBERS: Mapping[str, str] = {
    "label": "label",
    "description": "description",
    "partNumber": "part_number",
    "multiplicity": "multiplicity",
    "pdmEnabled": "pdm_enabled",
    "propertyGroups": "property_groups",
    "instances": "instances",
    "previewCustomLink": "preview_custom_link",
    "previewSource": "preview_source",
    "figures": "figures",
    "icon": "icon",
    "attachments": "attachments",
    "externalLinks": "external_links",
    "pdmThumbnail": "pdm_thumbnail",
    "blockStatuses": "block_statuses",
    "type": "type",
}
"""The document's names of the fields of `Content`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBlock:
    """A checked create body. ``parent_id`` None: the root block is the parent."""

    id: str | None
    parent_id: str | None
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChanges:
    """A checked update body. ``parent_id``: UNSET stays, None is the root block; ``order_index`` UNSET stays."""

    given: Given
    parent_id: str | UnsetType | None
    order_index: float | UnsetType


class StoredBlock(NamedTuple):
    """A block's row, in the order of every SELECT of blocks. Instants are milliseconds since 1970."""

    id: str
    workspace_id: str
    parent_id: str | None
    order_index: float
    version: int
    created_at: int
    updated_at: int
    created_by: str
    updated_by: str
    label: str
    description: str
    part_number: str
    multiplicity: str
    pdm_enabled: int
    property_groups: str
    instances: str
    preview_custom_link: str
    preview_source: str
    figures: str
    icon: str
    attachments: str
    external_links: str
    pdm_thumbnail: str
    block_statuses: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A block with what follows from the tree: the ids from the root to itself, and its children in their order."""

    block: StoredBlock
    path: tuple[str, ...]
    children: tuple[str, ...]

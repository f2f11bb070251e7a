"""The members of the request bodies of blocks, and rows of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType
from pydantic import Field

from workspaced.core.bodies import Body
from workspaced.core.json_body import encode
from workspaced.core.json_schema import UUID, Schema
from workspaced.core.members import Flag, Identifier, Info, Number, Strings, Text


class StringList(Strings):
    """A list of strings, which is read as compact JSON text."""

    def _check(self, value: Any, info: Info) -> Any:
        return encode(super()._check(value, info)).decode()


class JsonNumber(Number):
    """A number, which is read as JSON text."""

    def _check(self, value: Any, info: Info) -> Any:
        return encode(super()._check(value, info)).decode()


class Parent(Identifier):
    """A parent block; an empty string or null means the root block."""

    form: ClassVar[Schema] = {"anyOf": [UUID, {"const": ""}]}

    def _check(self, value: Any, info: Info) -> Any:
        return None if value == "" else super()._check(value, info)


_Parent: TypeAlias = Annotated[
    str | None,
    Parent(description="The root block if it is empty, null or absent."),
    Field(alias="parentBlock"),
]
_Line: TypeAlias = Annotated[str, Text(longest="block_text_length", one_line=True)]
_Text: TypeAlias = Annotated[str, Text(longest="block_text_length")]
_List: TypeAlias = Annotated[str, StringList(most="block_list_items", longest="block_list_item_length", distinct=False)]


class BlockContent(Body):
    """The members of a block that do not depend on the tree (contract G4, B5). Lists and ``multiplicity`` are JSON texts."""

    label: Annotated[str, Text(longest="label_length", one_line=True, trimmed=True)] = ""
    description: Annotated[str, Text(longest="description_length")] = ""
    part_number: _Line = ""
    multiplicity: Annotated[
        str, JsonNumber(lowest=0, description="How often it occurs in its parent; 1 by default.")
    ] = "1"
    pdm_enabled: Annotated[bool, Flag()] = False
    property_groups: _List = "[]"
    instances: _List = "[]"
    preview_custom_link: _Text = ""
    preview_source: _Text = ""
    figures: _List = "[]"
    icon: _Text = ""
    attachments: _List = "[]"
    external_links: _List = "[]"
    pdm_thumbnail: _Text = ""
    block_statuses: _List = "[]"
    type: Annotated[str, StringList(most="block_list_items", longest="block_list_item_length")] = "[]"


class NewBlockPlace(Body):
    """The place of a new block in the tree. ``parent_id`` None: the root block is the parent."""

    workspace: Annotated[str, Identifier()]
    id: Annotated[str | None, Identifier()] = None
    parent_id: _Parent = None


class NewBlock(BlockContent, NewBlockPlace):
    """A create body; the members of `NewBlockPlace` come first."""


class BlockChanges(BlockContent):
    """An update body; null sets a member to its default."""

    is_update = True

    parent_id: _Parent = None
    order_index: Annotated[
        float | UnsetType, Number(nullable=False, description="The position among the children of its parent.")
    ] = UNSET


class StoredBlock(NamedTuple):
    """A row of a block. Instants are milliseconds since 1970."""

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
class PlacedBlock:
    """A block, the ids on its path from the root to itself, and the ids of its children in their order."""

    block: StoredBlock
    path: tuple[str, ...]
    children: tuple[str, ...]

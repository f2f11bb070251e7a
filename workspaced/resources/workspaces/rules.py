"""The members of the request bodies of workspaces. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import UNSET

from workspaced.core.json_schema import UUID, Schema, nullable
from workspaced.core.members import Flag, Identifier, Label, Member, Slot, Strings, body_schema, read_given
from workspaced.resources.blocks.values import BlockChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceMembers:
    """The members that both create bodies and update bodies have (contract A7)."""

    label: Annotated[str, Label(longest="label_length", description="Its name; need not be unique.")]
    public_can_read: Annotated[
        bool, Flag(name="publicCanReadEnabled", description="Whether any caller may read it without a key.")
    ] = False
    exports_enabled: Annotated[bool, Flag(description="Whether its files may be downloaded; true by default.")] = True
    guests_enabled: Annotated[bool, Flag(description="Whether keys of guests are accepted on it.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkspace(WorkspaceMembers):
    """A create body (contract W3, A7)."""

    id: Annotated[str | None, Identifier()] = None
    current_version: Annotated[str, Identifier(name="currentWorkspaceVersion")] = ""
    statuses: Annotated[tuple[str, ...], Strings(most="statuses", longest="status_length")] = ()


FLAGS: Final = frozenset({"public_can_read", "exports_enabled", "guests_enabled"})
"""The fields that decide which other callers have access. Only owners may change them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootChanges:
    """The ``rootBlock`` of an update body. ``id`` None: the present root block stays the root."""

    id: str | None
    changes: Mapping[str, Any]


class RootBlock(Member):
    """The changes of the root block, or only its id."""

    def _check(self, slot: Slot, value: Any) -> Any:
        if isinstance(value, str):
            value = {"id": Identifier().read(slot, value)}
        child = slot.fields.child(slot.name, value)
        given = child.raw("id")
        named = given is not UNSET and given is not None
        root_id = Identifier().read(Slot(child, "id", slot.limits), given) if named else None
        root = RootChanges(id=root_id, changes=read_given(BlockChanges, child, slot.limits))
        child.close()
        return root

    def _form(self, limits: Any) -> Schema:
        changes = body_schema(BlockChanges, limits)
        changes["properties"]["id"] = nullable(UUID)
        return {"anyOf": [changes, UUID]}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceChanges(WorkspaceMembers):
    """An update body (contract W5)."""

    root: Annotated[
        RootChanges | None,
        RootBlock(
            name="rootBlock",
            description="Changes of the root block. The id of another block makes that block the root.",
        ),
    ] = None

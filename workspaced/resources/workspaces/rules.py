"""The members of the request bodies of workspaces. Performs no I/O."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, ValidatorFunctionWrapHandler

from workspaced.core.bodies import Body, Nested, body_schema
from workspaced.core.json_schema import UUID, Schema
from workspaced.core.members import Flag, Identifier, Info, Label, Strings
from workspaced.resources.blocks.values import BlockChanges


class WorkspaceMembers(Body):
    """The members that both create bodies and update bodies have (contract A7)."""

    label: Annotated[str, Label(longest="label_length", description="Its name; need not be unique.")]
    public_can_read: Annotated[
        bool,
        Flag(description="Whether any caller may read it without a key."),
        Field(alias="publicCanReadEnabled"),
    ] = False
    exports_enabled: Annotated[bool, Flag(description="Whether its files may be downloaded; true by default.")] = True
    guests_enabled: Annotated[bool, Flag(description="Whether it accepts the keys of guests.")] = False


class NewWorkspace(WorkspaceMembers):
    """A create body (contract W3, A7)."""

    id: Annotated[str | None, Identifier()] = None
    current_version: Annotated[str, Identifier(), Field(alias="currentWorkspaceVersion")] = ""
    statuses: Annotated[tuple[str, ...], Strings(most="statuses", longest="status_length")] = ()


FLAGS: Final = frozenset({"public_can_read", "exports_enabled", "guests_enabled"})
"""The fields that decide which other callers have access. Only owners may change them."""


class RootChanges(BlockChanges):
    """The ``rootBlock`` of an update body. ``id`` None: the present root block stays the root."""

    id: Annotated[str | None, Identifier()] = None


class RootBlock(Nested):
    """The changes of the root block, or only the id of the block that becomes the root."""

    def _check_inner(self, value: Any, check: ValidatorFunctionWrapHandler, info: Info) -> Any:
        return check({"id": Identifier().read(value, info)} if isinstance(value, str) else value)

    def _form(self, limits: Any) -> Schema:
        return {"anyOf": [body_schema(RootChanges, limits), UUID]}


class WorkspaceChanges(WorkspaceMembers):
    """An update body (contract W5)."""

    is_update = True

    root: Annotated[
        RootChanges | None,
        RootBlock(
            body=RootChanges,
            description="Changes of the root block. The id of another block makes that block the root.",
        ),
        Field(alias="rootBlock"),
    ] = None

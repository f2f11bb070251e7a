"""Records of workspaces, in responses and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, field

from workspaced.core.json_schema import Timestamp, Uuid
from workspaced.core.records import record_from
from workspaced.core.timestamps import stamp
from workspaced.resources.workspaces.store import StoredWorkspace, WorkspaceContents

Ids: TypeAlias = tuple[str, ...]


class WorkspaceRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A workspace. Its lists hold the ids of its contents."""

    id: Uuid
    label: str
    root_block: Uuid
    created_at: Timestamp
    updated_at: Timestamp
    created_by: str
    blocks: Ids
    attachments: Ids
    property_definitions: Ids
    property_instances: Ids
    status_definitions: Ids
    status_instances: Ids
    status_options: Ids
    requirements_pages: Ids
    requirement_blocks: Ids
    reports: Ids
    report_blocks: Ids
    attributes: Ids
    interfaces: Ids
    bom_tables: Ids
    bom_columns: Ids
    code_blocks: Ids
    code_inputs: Ids
    code_outputs: Ids
    public_can_read: bool = field(name="publicCanReadEnabled")
    current_version: Annotated[str, Meta(description="Empty if none was given.")] = field(
        name="currentWorkspaceVersion"
    )
    exports_enabled: bool
    guests_enabled: bool
    statuses: Ids


# Lists that no operation of this version fills (contract W4).
_EMPTY: Final = (names := WorkspaceRecord.__struct_fields__)[
    names.index("property_definitions") : names.index("public_can_read")
]


def workspace_record(workspace: StoredWorkspace, contents: WorkspaceContents) -> WorkspaceRecord:
    """Return the record of a workspace: the members of the interface document, and five members of create bodies."""
    return record_from(WorkspaceRecord, workspace, **contents._asdict(), **dict.fromkeys(_EMPTY, ()))


def filterable(workspace: StoredWorkspace) -> Mapping[str, str]:
    """Return the values of the members that a filter can name."""
    return {
        "id": workspace.id,
        "label": workspace.label,
        "rootBlock": workspace.root_block,
        "createdAt": stamp(workspace.created_at),
        "updatedAt": stamp(workspace.updated_at),
        "createdBy": workspace.created_by,
    }

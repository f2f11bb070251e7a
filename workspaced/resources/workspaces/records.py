"""A workspace as the document shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from workspaced.core.timestamps import stamp
from workspaced.resources.workspaces.store import Collections, StoredWorkspace

# No documented operation fills these yet (contract W4), and ids are never made up.
_EMPTY: Final = (
    "propertyDefinitions",
    "propertyInstances",
    "statusDefinitions",
    "statusInstances",
    "statusOptions",
    "requirementsPages",
    "requirementBlocks",
    "reports",
    "reportBlocks",
    "attributes",
    "interfaces",
    "bomTables",
    "bomColumns",
    "codeBlocks",
    "codeInputs",
    "codeOutputs",
)

COLLECTIONS: Final = ("blocks", "attachments", *_EMPTY)
"""The members that hold ids of what is in a workspace."""


def record(workspace: StoredWorkspace, collections: Collections) -> dict[str, object]:
    """The documented members, and the five create members that can be read back."""
    return {
        **filterable(workspace),
        "blocks": list(collections.blocks),
        "attachments": list(collections.attachments),
        **{name: [] for name in _EMPTY},
        "publicCanReadEnabled": workspace.public_can_read,
        "currentWorkspaceVersion": workspace.current_version,
        "exportsEnabled": workspace.exports_enabled,
        "guestsEnabled": workspace.guests_enabled,
        "statuses": list(workspace.statuses),
    }


def filterable(workspace: StoredWorkspace) -> Mapping[str, str]:
    """The members that filters and sorting know."""
    return {
        "id": workspace.id,
        "label": workspace.label,
        "rootBlock": workspace.root_block,
        "createdAt": stamp(workspace.created_at),
        "updatedAt": stamp(workspace.updated_at),
        "createdBy": workspace.created_by,
    }

"""What a workspace may be, and what it is with its defaults. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET

from workspaced.core.fields import Fields
from workspaced.resources.blocks.rules import block_changes
from workspaced.resources.blocks.values import BlockChanges
from workspaced.settings.model import Limits

FLAGS: Mapping[str, tuple[str, bool]] = {
    "publicCanReadEnabled": ("public_can_read", False),
    "exportsEnabled": ("exports_enabled", True),
    "guestsEnabled": ("guests_enabled", False),
}
"""Member, field and default of what opens or closes a workspace to others (contract A7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkspace:
    """A checked create body (contract W3, A7)."""

    id: str | None
    label: str
    public_can_read: bool
    exports_enabled: bool
    guests_enabled: bool
    current_version: str
    statuses: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootChanges:
    """A checked ``rootBlock`` of an update body. ``id`` None: the block that is the root already."""

    id: str | None
    changes: BlockChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceChanges:
    """A checked update body: the fields that are given, and what is to become of the root block."""

    given: Mapping[str, str | bool]
    root: RootChanges | None


def read_workspace_changes(body: object, limits: Limits) -> tuple[WorkspaceChanges, tuple[str, ...]]:
    """The update body and the names of members that were ignored (contract W5).

    Raises:
        Invalid: something is wrong with it.
    """
    fields = Fields(body)
    given: dict[str, str | bool] = {}
    label = fields.label(longest=limits.label_length, required=False)
    if isinstance(label, str):
        given["label"] = label
    for member, (field, default) in FLAGS.items():
        if fields.raw(member) is not UNSET:
            given[field] = fields.flag(member, default=default)
    root = _root(fields, limits)
    return WorkspaceChanges(given=given, root=root), fields.finish()


def _root(fields: Fields, limits: Limits) -> RootChanges | None:
    value = fields.raw("rootBlock")
    if value is UNSET or value is None:
        return None
    if isinstance(value, str):
        value = {"id": fields.identifier("rootBlock")}
    child = fields.child("rootBlock", value)
    root = RootChanges(id=child.identifier("id"), changes=block_changes(child, limits))
    child.close()
    return root


def read_new_workspace(body: object, limits: Limits) -> tuple[NewWorkspace, tuple[str, ...]]:
    """The create body and the names of members that were ignored.

    Raises:
        Invalid: something is wrong with it.
    """
    fields = Fields(body)
    label = fields.label(longest=limits.label_length, required=True)
    new = NewWorkspace(
        id=fields.identifier("id"),
        label=label if isinstance(label, str) else "",
        **{field: fields.flag(member, default=default) for member, (field, default) in FLAGS.items()},
        current_version=fields.identifier("currentWorkspaceVersion") or "",
        statuses=fields.texts("statuses", most=limits.statuses, longest=limits.status_length),
    )
    return new, fields.finish()

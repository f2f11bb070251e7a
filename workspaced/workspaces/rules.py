"""What a new workspace may be, and what it is with its defaults. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from workspaced.members import Members
from workspaced.settings import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorkspace:
    """A checked create body (W3, A7)."""

    id: str | None
    label: str
    public_can_read: bool
    exports_enabled: bool
    guests_enabled: bool
    current_version: str
    statuses: tuple[str, ...]


def read_new_workspace(body: object, limits: Limits) -> tuple[NewWorkspace, tuple[str, ...]]:
    """The create body and the names of members that were ignored.

    Raises:
        Invalid: something is wrong with it.
    """
    members = Members(body)
    label = members.label(longest=limits.label_length, required=True)
    new = NewWorkspace(
        id=members.identifier("id"),
        label=label if isinstance(label, str) else "",
        public_can_read=members.flag("publicCanReadEnabled", default=False),
        exports_enabled=members.flag("exportsEnabled", default=True),
        guests_enabled=members.flag("guestsEnabled", default=False),
        current_version=members.identifier("currentWorkspaceVersion") or "",
        statuses=members.texts("statuses", most=limits.statuses, longest=limits.status_length),
    )
    return new, members.finish()

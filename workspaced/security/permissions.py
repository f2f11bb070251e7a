"""Scopes, roles, grants, and what follows from them (contract A5). Pure: tables and set operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

WORKSPACES_READ: Final = "workspaces:read"
WORKSPACES_CREATE: Final = "workspaces:create"
WORKSPACES_WRITE: Final = "workspaces:write"
WORKSPACES_DELETE: Final = "workspaces:delete"
DATA_SINKS_READ: Final = "data_sinks:read"
DATA_SINKS_PUSH: Final = "data_sinks:push"
DATA_SINKS_WRITE: Final = "data_sinks:write"
BLOCKS_READ: Final = "blocks:read"
BLOCKS_WRITE: Final = "blocks:write"
FILES_READ: Final = "files:read"
FILES_WRITE: Final = "files:write"
AUDIT_READ: Final = "audit:read"
ADMIN: Final = "admin"

_READER = frozenset({WORKSPACES_READ, DATA_SINKS_READ, BLOCKS_READ, FILES_READ, "webhooks:read"})
_PUSHER = frozenset({WORKSPACES_READ, DATA_SINKS_READ, DATA_SINKS_PUSH})
_EDITOR = _READER | _PUSHER | {DATA_SINKS_WRITE, BLOCKS_WRITE, FILES_WRITE, "webhooks:write", WORKSPACES_WRITE}
_OWNER = _EDITOR | {WORKSPACES_CREATE, WORKSPACES_DELETE, AUDIT_READ, ADMIN}

ROLES: Final[Mapping[str, frozenset[str]]] = {
    "reader": _READER,
    "pusher": _PUSHER,
    "editor": _EDITOR,
    "owner": _OWNER,
}

IMPLIED: Final[Mapping[str, frozenset[str]]] = {DATA_SINKS_WRITE: frozenset({DATA_SINKS_PUSH})}

EVERYWHERE: Final = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceGrant:
    """A role on one workspace, or on all (``workspace_id`` is `EVERYWHERE`)."""

    workspace_id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who is calling: the name that records carry, the key that was used, and what both allow together."""

    name: str
    key_id: str
    everywhere: frozenset[str]
    by_workspace: Mapping[str, frozenset[str]]

    def may(self, scope: str, workspace_id: str | None = None) -> bool:
        """Whether the scope holds on that workspace, or (None) on all of them."""
        if scope in self.everywhere:
            return True
        return workspace_id is not None and scope in self.by_workspace.get(workspace_id, frozenset())

    def may_somewhere(self, scope: str) -> bool:
        """Whether there is any place where the scope holds."""
        return scope in self.everywhere or any(scope in scopes for scopes in self.by_workspace.values())


def principal_of(
    *, name: str, key_id: str, key_scopes: frozenset[str], grants: tuple[WorkspaceGrant, ...]
) -> Principal:
    """What a key may do: the scopes of the key AND those of the grants of its principal."""
    own = _with_implied(key_scopes)
    by_workspace: dict[str, frozenset[str]] = {}
    for grant in grants:
        allowed = own & _with_implied(ROLES.get(grant.role, frozenset()))
        by_workspace[grant.workspace_id] = by_workspace.get(grant.workspace_id, frozenset()) | allowed
    everywhere = by_workspace.pop(EVERYWHERE, frozenset())
    return Principal(name=name, key_id=key_id, everywhere=everywhere, by_workspace=by_workspace)


def _with_implied(scopes: frozenset[str]) -> frozenset[str]:
    return scopes.union(*(IMPLIED.get(scope, frozenset()) for scope in scopes))

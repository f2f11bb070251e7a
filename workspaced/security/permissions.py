"""Scopes, roles, grants, and the permissions that follow from them (contract A5). Performs no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
WEBHOOKS_READ: Final = "webhooks:read"
WEBHOOKS_WRITE: Final = "webhooks:write"
AUDIT_READ: Final = "audit:read"
ADMIN: Final = "admin"

_READER = frozenset({WORKSPACES_READ, DATA_SINKS_READ, BLOCKS_READ, FILES_READ, WEBHOOKS_READ})
_PUSHER = frozenset({WORKSPACES_READ, DATA_SINKS_READ, DATA_SINKS_PUSH})
_EDITOR = _READER | _PUSHER | {DATA_SINKS_WRITE, BLOCKS_WRITE, FILES_WRITE, WEBHOOKS_WRITE, WORKSPACES_WRITE}
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
    """A role on one workspace, or on all workspaces (``workspace_id`` is `EVERYWHERE`)."""

    workspace_id: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller: the name for records, the key, and the scopes that both the key and its grants permit.

    ``secret`` is the digest of the secret that the caller sent. Sessions and links store it, because they end with the secret.
    ``expires_at``: when this secret expires, in milliseconds since 1970; None: never.
    """

    name: str
    key_id: str
    everywhere: frozenset[str]
    by_workspace: Mapping[str, frozenset[str]]
    secret: bytes = field(default=b"", repr=False)
    expires_at: int | None = None

    def may(self, scope: str, workspace_id: str | None = None) -> bool:
        """Return whether the scope is granted on the workspace; ``workspace_id`` None: on all workspaces."""
        if scope in self.everywhere:
            return True
        return workspace_id is not None and scope in self.by_workspace.get(workspace_id, frozenset())

    def may_somewhere(self, scope: str) -> bool:
        """Return whether the scope is granted on at least one workspace."""
        return scope in self.everywhere or any(scope in scopes for scopes in self.by_workspace.values())


def principal_of(
    *,
    name: str,
    key_id: str,
    key_scopes: frozenset[str],
    grants: tuple[WorkspaceGrant, ...],
    secret: bytes = b"",
    expires_at: int | None = None,
) -> Principal:
    """Return the permissions of a key: the scopes that both the key and the grants of its principal have."""
    own = _with_implied(key_scopes)
    by_workspace: dict[str, frozenset[str]] = {}
    for grant in grants:
        allowed = own & _with_implied(ROLES.get(grant.role, frozenset()))
        by_workspace[grant.workspace_id] = by_workspace.get(grant.workspace_id, frozenset()) | allowed
    everywhere = by_workspace.pop(EVERYWHERE, frozenset())
    return Principal(
        name=name,
        key_id=key_id,
        everywhere=everywhere,
        by_workspace=by_workspace,
        secret=secret,
        expires_at=expires_at,
    )


def _with_implied(scopes: frozenset[str]) -> frozenset[str]:
    return scopes.union(*(IMPLIED.get(scope, frozenset()) for scope in scopes))

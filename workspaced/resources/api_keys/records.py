"""API keys in responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.json_schema import Timestamp, Uuid
from workspaced.core.timestamps import stamp
from workspaced.security.key_store import StoredKey
from workspaced.security.permissions import WorkspaceGrant


class GrantRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A role of the principal, in one workspace or in all."""

    workspace_id: Annotated[Uuid | None, Meta(description="null: all.")]
    role: str


class ApiKeyRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """An API key, without the key itself. `grants` are those of its principal."""

    id: str
    name: str
    principal: str
    last_four: str
    scopes: list[str]
    grants: list[GrantRecord]
    guest: bool
    created_at: Timestamp
    expires_at: Annotated[Timestamp | None, Meta(description="null: never.")]
    last_used_at: Timestamp | None
    revoked_at: Timestamp | None


class ShownApiKeyRecord(ApiKeyRecord, kw_only=True, rename="camel"):
    """An API key with the key itself."""

    key: (
        Annotated[str, Meta(description="The key; it is never shown again. Absent from a repeated response.")]
        | UnsetType
    ) = UNSET


def key_members(key: StoredKey, grants: Iterable[WorkspaceGrant]) -> dict[str, Any]:
    """Return the members of an `ApiKeyRecord`; ``grants`` are those of its principal."""
    return {
        "id": key.id,
        "name": key.name,
        "principal": key.principal,
        "last_four": key.last_four,
        "scopes": list(key.scopes),
        "grants": [GrantRecord(workspace_id=grant.workspace_id or None, role=grant.role) for grant in grants],
        "guest": key.guest,
        "created_at": stamp(key.created_at),
        "expires_at": _instant(key.expires_at),
        "last_used_at": _instant(key.last_used_at),
        "revoked_at": _instant(key.revoked_at),
    }


def _instant(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else stamp(milliseconds)

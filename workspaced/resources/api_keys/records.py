"""Records of API keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from workspaced.core.json_schema import Timestamp, Uuid
from workspaced.core.records import record_from
from workspaced.security.key_store import StoredKey
from workspaced.security.permissions import WorkspaceGrant


class GrantRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """A role of the principal, in one workspace or in all workspaces."""

    workspace_id: Annotated[Uuid | None, Meta(description="null: all workspaces.")]
    role: str


class ApiKeyRecord(msgspec.Struct, kw_only=True, rename="camel"):
    """An API key, without the key itself. `grants` are the grants of its principal."""

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


KeyT = TypeVar("KeyT", bound=ApiKeyRecord)


def key_record(record_type: type[KeyT], stored: StoredKey, grants: Iterable[WorkspaceGrant], **others: str) -> KeyT:
    """Return the record of a key. ``grants``: the grants of its principal. ``others``: further fields of ``record_type``."""
    shown = [GrantRecord(workspace_id=grant.workspace_id or None, role=grant.role) for grant in grants]
    return record_from(record_type, stored, scopes=list(stored.scopes), grants=shown, **others)

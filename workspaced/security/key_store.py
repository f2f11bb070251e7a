"""API keys and grants in the database. Each function works within the caller's transaction."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import NamedTuple

from workspaced.security.key_format import digest, new_key, new_key_id
from workspaced.security.permissions import EVERYWHERE, ROLES, WorkspaceGrant
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.security", "key_store.sql")


class StoredKey(NamedTuple):
    """The stored data of a key. The key itself is not stored.

    The fields are in the order of the columns in every SELECT. Times are milliseconds since 1970.
    """

    id: str
    name: str
    principal: str
    last_four: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    scopes: tuple[str, ...]
    guest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Data for authentication. ``digests``: each secret's digest and expiry (or None). Times are milliseconds since 1970."""

    principal: str
    scopes: frozenset[str]
    digests: tuple[tuple[bytes, int | None], ...]
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    grants: tuple[WorkspaceGrant, ...]


def create_key(
    tx: Transaction,
    *,
    name: str,
    role: str,
    now: int,
    expires_at: int | None,
    workspace_id: str = EVERYWHERE,
    scopes: frozenset[str] | None = None,
    guest: bool = False,
) -> str:
    """Create a key, and grant the role to a principal with the key's name. Return the key, which is not stored.

    ``scopes`` None: all scopes of the role. ``guest``: the grants apply only in workspaces that admit guests (contract A7).
    """
    key_id = new_key_id(secrets.choice)
    key = new_key(key_id, secrets.choice)
    tx.run(
        _SQL["insert_key"],
        {
            "id": key_id,
            "name": name,
            "principal": name,
            "scopes": json.dumps(sorted(ROLES[role] if scopes is None else scopes)),
            "guest": guest,
            "last_four": key[-4:],
            "now": now,
            "expires_at": expires_at,
        },
    )
    tx.run(_SQL["insert_secret"], {"id": key_id, "sha256": digest(key)})
    grant(tx, principal=name, workspace_id=workspace_id, role=role, now=now)
    return key


def grant(tx: Transaction, *, principal: str, workspace_id: str, role: str, now: int) -> None:
    """Grant a role on a workspace. An existing grant is not changed."""
    tx.run(_SQL["insert_grant"], {"principal": principal, "workspace_id": workspace_id, "role": role, "now": now})


def purge(tx: Transaction, workspace: int, _most: int) -> int:
    """Delete the grants on a workspace that is being purged. Return the number of deleted grants."""
    return tx.run(_SQL["purge_grants"], {"workspace": workspace})


def list_keys(reader: ReadTransaction) -> list[StoredKey]:
    """Return all keys, oldest first."""
    return [_key(row) for row in reader.all(_SQL["list_keys"])]


def find_key(reader: ReadTransaction, key_id: str) -> StoredKey | None:
    """Return the key with this id, also if it is revoked; None if there is no such key."""
    row = reader.one(_SQL["find_key"], {"id": key_id})
    return _key(row) if row else None


def all_grants(reader: ReadTransaction, principal: str) -> tuple[WorkspaceGrant, ...]:
    """Return all grants of a principal, including grants without a present effect (see `live_grants`)."""
    rows = reader.all(_SQL["all_grants"], {"principal": principal})
    return tuple(WorkspaceGrant(workspace_id=row[0], role=row[1]) for row in rows)


def live_grants(reader: ReadTransaction, principal: str, *, guest: bool) -> tuple[WorkspaceGrant, ...]:
    """Return the grants that have an effect: not on a deleted workspace, nor for a guest on a workspace closed to guests."""
    rows = reader.all(_SQL["grants_of_guest" if guest else "grants_of_principal"], {"principal": principal})
    return tuple(WorkspaceGrant(workspace_id=row[0], role=row[1]) for row in rows)


def workspace_is_there(reader: ReadTransaction, workspace_id: str) -> bool:
    """Return whether the workspace exists and is not deleted."""
    return reader.one(_SQL["workspace_is_there"], {"workspace_id": workspace_id}) is not None


def keys_named(reader: ReadTransaction, name: str) -> list[StoredKey]:
    """Return the keys with this id or name that are not revoked."""
    return [_key(row) for row in reader.all(_SQL["keys_named"], {"name": name})]


def revoke_key(tx: Transaction, *, key_id: str, now: int) -> None:
    """Revoke a key with all its secrets."""
    tx.run(_SQL["revoke_key"], {"id": key_id, "now": now})


def rotate_key(tx: Transaction, *, key_id: str, now: int, overlap_ms: int) -> str:
    """Return a new secret for a key id. The old secrets expire after the overlap (contract A4)."""
    key = new_key(key_id, secrets.choice)
    tx.run(_SQL["drop_ended_secrets"], {"id": key_id, "now": now})
    tx.run(_SQL["end_secrets"], {"id": key_id, "until": now + overlap_ms})
    tx.run(_SQL["insert_secret"], {"id": key_id, "sha256": digest(key)})
    tx.run(_SQL["set_last_four"], {"id": key_id, "last_four": key[-4:]})
    return key


def touch_key(tx: Transaction, *, key_id: str, now: int) -> None:
    """Store the time of a key's last use."""
    tx.run(_SQL["touch_key"], {"id": key_id, "now": now})


def credentials(reader: ReadTransaction, key_id: str) -> Credentials | None:
    """Return the data of a key for authentication, if the key exists."""
    row = reader.one(_SQL["key_for_authentication"], {"id": key_id})
    if row is None:
        return None
    principal, scopes, guest, expires_at, last_used_at, revoked_at = row
    return Credentials(
        principal=principal,
        scopes=frozenset(json.loads(scopes)),
        digests=tuple((found[0], found[1]) for found in reader.all(_SQL["secrets_of_key"], {"id": key_id})),
        expires_at=expires_at,
        last_used_at=last_used_at,
        revoked_at=revoked_at,
        grants=live_grants(reader, principal, guest=bool(guest)),
    )


def _key(row: Row) -> StoredKey:
    *plain, scopes, guest = row
    return StoredKey._make((*plain, tuple(json.loads(scopes)), bool(guest)))

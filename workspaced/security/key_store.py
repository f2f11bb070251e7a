"""API keys and grants in the database. Every function is one step of somebody's transaction."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from workspaced.security.key_format import digest, new_key, new_key_id
from workspaced.security.permissions import EVERYWHERE, ROLES, WorkspaceGrant
from workspaced.storage.port import ReadTransaction, Row, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.security", "key_store.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """What is known of a key; never the key itself. Instants are milliseconds since 1970."""

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
    """What authentication needs of a key: each digest with the instant at which it ends, or None."""

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
    """A new key, and the role for its principal, who bears the key's name; returns the key, which is stored nowhere.

    ``scopes`` None: all that the role has. ``guest``: the grants hold only in workspaces that let guests in (contract A7).
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
    """Give a role; one that is there already stays."""
    tx.run(_SQL["insert_grant"], {"principal": principal, "workspace_id": workspace_id, "role": role, "now": now})


def purge(tx: Transaction, workspace: int, _most: int) -> int:
    """Drop the grants on a workspace that is being purged; how many they were, 0 when none is left."""
    return tx.run(_SQL["purge_grants"], {"workspace": workspace})


def list_keys(reader: ReadTransaction) -> list[StoredKey]:
    """Every key, oldest first."""
    return [_key(row) for row in reader.all(_SQL["list_keys"])]


def find_key(reader: ReadTransaction, key_id: str) -> StoredKey | None:
    """The key with this id, revoked or not."""
    row = reader.one(_SQL["find_key"], {"id": key_id})
    return _key(row) if row else None


def all_grants(reader: ReadTransaction, principal: str) -> tuple[WorkspaceGrant, ...]:
    """What was granted to a principal, whether it gives anything now or not."""
    rows = reader.all(_SQL["all_grants"], {"principal": principal})
    return tuple(WorkspaceGrant(workspace_id=row[0], role=row[1]) for row in rows)


def live_grants(reader: ReadTransaction, principal: str, *, guest: bool) -> tuple[WorkspaceGrant, ...]:
    """What gives a principal anything now: workspaces that are deleted, or closed to a guest, are not among it."""
    rows = reader.all(_SQL["grants_of_guest" if guest else "grants_of_principal"], {"principal": principal})
    return tuple(WorkspaceGrant(workspace_id=row[0], role=row[1]) for row in rows)


def workspace_is_there(reader: ReadTransaction, workspace_id: str) -> bool:
    """Whether there is such a workspace, not deleted."""
    return reader.one(_SQL["workspace_is_there"], {"workspace_id": workspace_id}) is not None


def keys_named(reader: ReadTransaction, name: str) -> list[str]:
    """The ids of the keys that are not revoked and have this id or name."""
    return [row[0] for row in reader.all(_SQL["keys_named"], {"name": name})]


def revoke_key(tx: Transaction, *, key_id: str, now: int) -> None:
    """End a key and every secret of it, at once."""
    tx.run(_SQL["revoke_key"], {"id": key_id, "now": now})


def rotate_key(tx: Transaction, *, key_id: str, now: int, overlap_ms: int) -> str:
    """A new secret under the same id; the old ones end after the overlap (contract A4). Returns the new key."""
    key = new_key(key_id, secrets.choice)
    tx.run(_SQL["drop_ended_secrets"], {"id": key_id, "now": now})
    tx.run(_SQL["end_secrets"], {"id": key_id, "until": now + overlap_ms})
    tx.run(_SQL["insert_secret"], {"id": key_id, "sha256": digest(key)})
    tx.run(_SQL["set_last_four"], {"id": key_id, "last_four": key[-4:]})
    return key


def touch_key(tx: Transaction, *, key_id: str, now: int) -> None:
    """Note that the key was used."""
    tx.run(_SQL["touch_key"], {"id": key_id, "now": now})


def credentials(reader: ReadTransaction, key_id: str) -> Credentials | None:
    """What authentication needs of the key with this id, if there is one."""
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
    return StoredKey(
        id=row[0],
        name=row[1],
        principal=row[2],
        last_four=row[3],
        created_at=row[4],
        expires_at=row[5],
        last_used_at=row[6],
        revoked_at=row[7],
        scopes=tuple(json.loads(row[8])),
        guest=bool(row[9]),
    )

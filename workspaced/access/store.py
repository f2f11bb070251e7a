"""API keys and grants in the database. Every function is one step of somebody's transaction."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from ingestd.process.statements import load_statements
from workspaced.access.key_form import digest, new_key, new_key_id
from workspaced.access.permissions import EVERYWHERE, ROLES, Grant
from workspaced.storage.port import Reader, Transaction

_SQL = load_statements("workspaced.access", "queries.sql")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What authentication needs of a key: each digest with the instant at which it ends, or None."""

    principal: str
    scopes: frozenset[str]
    digests: tuple[tuple[bytes, int | None], ...]
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    grants: tuple[Grant, ...]


def create_key(
    tx: Transaction, *, name: str, role: str, now: int, expires_at: int | None, workspace_id: str = EVERYWHERE
) -> str:
    """A new key, and the role for its principal, who bears the key's name; returns the key, which is stored nowhere."""
    key_id = new_key_id(secrets.choice)
    key = new_key(key_id, secrets.choice)
    tx.run(
        _SQL["insert_key"],
        {
            "id": key_id,
            "name": name,
            "principal": name,
            "scopes": json.dumps(sorted(ROLES[role])),
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


def list_keys(reader: Reader) -> list[StoredKey]:
    """Every key, oldest first."""
    return [
        StoredKey(
            id=row[0],
            name=row[1],
            principal=row[2],
            last_four=row[3],
            created_at=row[4],
            expires_at=row[5],
            last_used_at=row[6],
            revoked_at=row[7],
        )
        for row in reader.all(_SQL["list_keys"])
    ]


def keys_named(reader: Reader, name: str) -> list[str]:
    """The ids of the keys that are not revoked and have this id or name."""
    return [row[0] for row in reader.all(_SQL["keys_named"], {"name": name})]


def revoke_key(tx: Transaction, *, key_id: str, now: int) -> None:
    """End a key and every secret of it, at once."""
    tx.run(_SQL["revoke_key"], {"id": key_id, "now": now})


def rotate_key(tx: Transaction, *, key_id: str, now: int, overlap_ms: int) -> str:
    """A new secret under the same id; the old ones end after the overlap (A4). Returns the new key."""
    key = new_key(key_id, secrets.choice)
    tx.run(_SQL["end_secrets"], {"id": key_id, "until": now + overlap_ms})
    tx.run(_SQL["insert_secret"], {"id": key_id, "sha256": digest(key)})
    tx.run(_SQL["set_last_four"], {"id": key_id, "last_four": key[-4:]})
    return key


def touch_key(tx: Transaction, *, key_id: str, now: int) -> None:
    """Note that the key was used."""
    tx.run(_SQL["touch_key"], {"id": key_id, "now": now})


def credentials(reader: Reader, key_id: str) -> Credentials | None:
    """What authentication needs of the key with this id, if there is one."""
    row = reader.one(_SQL["key_for_authentication"], {"id": key_id})
    if row is None:
        return None
    _, principal, scopes, expires_at, last_used_at, revoked_at = row
    return Credentials(
        principal=principal,
        scopes=frozenset(json.loads(scopes)),
        digests=tuple((found[0], found[1]) for found in reader.all(_SQL["secrets_of_key"], {"id": key_id})),
        expires_at=expires_at,
        last_used_at=last_used_at,
        revoked_at=revoked_at,
        grants=tuple(
            Grant(workspace_id=found[0], role=found[1])
            for found in reader.all(_SQL["grants_of_principal"], {"principal": principal})
        ),
    )

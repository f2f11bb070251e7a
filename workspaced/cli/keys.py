"""``workspaced keys``: create, list, rotate and revoke API keys."""

from __future__ import annotations

from collections.abc import Iterable

import click

from ingestd.process.terminal_text import echo
from workspaced.cli.database import address_option, configured_limits, in_transaction, uuid_of
from workspaced.cli.failure import Failure
from workspaced.cli.listing import Row, json_option, print_rows
from workspaced.core.clock import now_ms
from workspaced.core.text import has_controls
from workspaced.core.timestamps import stamp
from workspaced.security import key_store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.security.key_format import key_id_of
from workspaced.security.key_store import StoredKey
from workspaced.security.permissions import EVERYWHERE, ROLES, WorkspaceGrant
from workspaced.settings.model import MOST_KEY_DAYS
from workspaced.storage.address import Address
from workspaced.storage.port import ReadTransaction, Transaction

_HOUR_MS = 3_600_000
_COLUMNS = ("id", "name", "roles", "key", "created", "expires", "last_used", "state")


@click.group()
def keys() -> None:
    """API keys: create, list, rotate, revoke."""


@keys.command()
@click.argument("name")
@click.option("--role", type=click.Choice(list(ROLES)), required=True, help="What the key may do.")
@click.option(
    "--workspace",
    default=EVERYWHERE,
    help="Id of the one workspace for which the key is valid; default: all. All keys of a name are valid in the "
    "same workspaces.",
)
@click.option(
    "--days",
    type=click.IntRange(1, MOST_KEY_DAYS),
    default=365,
    show_default=True,
    help="How many days the key is valid.",
)
@click.option("--guest", is_flag=True, help="The key is valid only in workspaces that admit guests.")
@click.option("--never-expires", is_flag=True, help="The key is valid until it is revoked.")
@address_option
def create(
    name: str, role: str, workspace: str, days: int, address: Address, *, guest: bool, never_expires: bool
) -> None:
    """Create a key for NAME and print it. The key itself is not stored, so it can't be printed again."""
    longest = configured_limits().label_length
    if not name.strip() or len(name) > longest or has_controls(name):
        raise Failure(f"A key's name must have 1 to {longest} characters, and no control characters.", 2)
    workspace_id = uuid_of("workspace", workspace) if workspace else EVERYWHERE
    now = now_ms()

    def work(tx: Transaction) -> tuple[str, tuple[WorkspaceGrant, ...]]:
        former = key_store.all_grants(tx, name.strip())
        key = key_store.create_key(
            tx,
            name=name.strip(),
            role=role,
            now=now,
            expires_at=None if never_expires else now + days * 24 * _HOUR_MS,
            workspace_id=workspace_id,
            guest=guest,
        )
        action = AuditAction(
            action="api_key.created",
            resource_id=key_id_of(key) or "",
            resource_label=name.strip(),
            workspace_id=workspace_id,
        )
        note(tx, SYSTEM, action, now=now)
        return key, former

    key, former = in_transaction(address, work, creates=True)
    echo(key)
    places = {one.workspace_id or "all workspaces" for one in former}
    if places and places != {workspace_id or "all workspaces"}:
        all_places = ", ".join(sorted(places | {workspace_id or "all workspaces"}))
        echo(
            f"workspaced: Other keys were created for '{name.strip()}'. All keys of this name are now valid in: {all_places}. "
            "For separate permissions, revoke the keys of this name, and create keys with different names.",
            err=True,
        )


@keys.command("list")
@json_option
@address_option
def list_keys(address: Address, *, as_json: bool) -> None:
    """Print all keys: roles, last characters, times and state, but never the key itself."""
    now = now_ms()

    def work(tx: Transaction) -> list[Row]:
        return [_row(key, key_store.all_grants(tx, key.principal), now) for key in key_store.list_keys(tx)]

    print_rows(_COLUMNS, in_transaction(address, work), as_json=as_json)


@keys.command()
@click.argument("key")
@address_option
def revoke(key: str, address: Address) -> None:
    """Revoke KEY, given by id or name. A running service refuses the key within seconds."""

    def work(tx: Transaction) -> str:
        found, now = _find(tx, key), now_ms()
        key_store.revoke_key(tx, key_id=found.id, now=now)
        note(tx, SYSTEM, _action("api_key.revoked", found), now=now)
        return found.id

    echo(f"{in_transaction(address, work)} is revoked.")


@keys.command()
@click.argument("key")
@click.option(
    "--overlap-hours",
    type=click.IntRange(0, 168),
    default=24,
    show_default=True,
    help="How many hours the old secret stays valid.",
)
@address_option
def rotate(key: str, overlap_hours: int, address: Address) -> None:
    """Create a new secret for KEY, given by id or name, and print it. The secret can't be printed again."""

    def work(tx: Transaction) -> str:
        found, now = _find(tx, key), now_ms()
        note(tx, SYSTEM, _action("api_key.rotated", found), now=now)
        return key_store.rotate_key(tx, key_id=found.id, now=now, overlap_ms=overlap_hours * _HOUR_MS)

    echo(in_transaction(address, work))


def _action(action: str, key: StoredKey) -> AuditAction:
    return AuditAction(action=action, resource_id=key.id, resource_label=key.name)


def _find(reader: ReadTransaction, name: str) -> StoredKey:
    """Return the one key with this id or name."""
    found = key_store.keys_named(reader, name)
    if not found:
        raise Failure(f"There is no key '{name}' that is not revoked; `workspaced keys list` shows all.", 1)
    if len(found) > 1:
        raise Failure(
            f"Several keys are named '{name}': {', '.join(key.id for key in found)}. Give one of these ids.", 1
        )
    return found[0]


def _row(key: StoredKey, grants: Iterable[WorkspaceGrant], now: int) -> Row:
    roles = [f"{one.role} in {one.workspace_id}" if one.workspace_id else one.role for one in grants]
    times = {"created": key.created_at, "expires": key.expires_at, "last_used": key.last_used_at}
    return {
        "id": key.id,
        "name": key.name,
        "roles": [*roles, *(["as a guest"] if key.guest else [])],
        "key": f"…{key.last_four}",
        **{name: stamp(at) if at is not None else None for name, at in times.items()},
        "state": _state(key, now),
    }


def _state(key: StoredKey, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "valid"

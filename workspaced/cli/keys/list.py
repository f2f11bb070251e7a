"""``workspaced keys list``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.core.clock import now_ms
from workspaced.core.timestamps import stamp
from workspaced.security import key_store
from workspaced.security.key_store import StoredKey
from workspaced.storage.address import Address


@click.command("list")
@address_option
def list_keys(address: Address) -> None:
    """Show every key: id, name, last letters, since when, until when, last use, state. Never the key."""
    now = now_ms()
    for key in in_transaction(address, key_store.list_keys):
        fields = (
            key.id,
            key.name,
            f"…{key.last_four}",
            stamp(key.created_at),
            stamp(key.expires_at) if key.expires_at else "never",
            stamp(key.last_used_at) if key.last_used_at else "unused",
            _state(key, now),
        )
        click.echo("\t".join(fields))


def _state(key: StoredKey, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "valid"

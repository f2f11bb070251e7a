"""``workspaced keys revoke``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.keys.key_lookup import the_key
from workspaced.core.clock import now_ms
from workspaced.security import key_store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction


@click.command()
@click.argument("key")
@address_option
def revoke(key: str, address: Address) -> None:
    """End KEY, given by id or name; a running service follows within seconds."""

    def work(tx: Transaction) -> str:
        key_id, now = the_key(tx, key), now_ms()
        key_store.revoke_key(tx, key_id=key_id, now=now)
        note(tx, SYSTEM, AuditAction(action="api_key.revoked", resource_id=key_id), now=now)
        return key_id

    click.echo(f"{in_transaction(address, work)} is revoked.")

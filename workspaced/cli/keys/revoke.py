"""``workspaced keys revoke``."""

from __future__ import annotations

import click

from workspaced.access import store
from workspaced.audit.log import SYSTEM, Deed, note
from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.keys.naming import the_key
from workspaced.clock import now_ms
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction


@click.command()
@click.argument("key")
@address_option
def revoke(key: str, address: Address) -> None:
    """End KEY, given by id or name; a running service follows within seconds."""

    def work(tx: Transaction) -> str:
        key_id, now = the_key(tx, key), now_ms()
        store.revoke_key(tx, key_id=key_id, now=now)
        note(tx, SYSTEM, Deed(action="api_key.revoked", resource_id=key_id), now=now)
        return key_id

    click.echo(f"{in_transaction(address, work)} is revoked.")

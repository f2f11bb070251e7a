"""``workspaced keys rotate``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.keys.key_lookup import the_key
from workspaced.core.clock import now_ms
from workspaced.security import key_store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction

_HOUR_MS = 3_600_000


@click.command()
@click.argument("key")
@click.option(
    "--overlap-hours",
    type=click.IntRange(0, 168),
    default=24,
    show_default=True,
    help="How long the old secret stays valid beside the new one.",
)
@address_option
def rotate(key: str, overlap_hours: int, address: Address) -> None:
    """Give KEY, named by id or name, a new secret and print it: once, it is stored nowhere."""

    def work(tx: Transaction) -> str:
        key_id, now = the_key(tx, key), now_ms()
        note(tx, SYSTEM, AuditAction(action="api_key.rotated", resource_id=key_id), now=now)
        return key_store.rotate_key(tx, key_id=key_id, now=now, overlap_ms=overlap_hours * _HOUR_MS)

    click.echo(in_transaction(address, work))

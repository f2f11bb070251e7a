"""``workspaced keys rotate``."""

from __future__ import annotations

from pathlib import Path

import click

from workspaced.access import store
from workspaced.app import now_ms
from workspaced.audit.log import SYSTEM, Deed, note
from workspaced.cli.keys.database import data_option, in_transaction, the_key
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
@data_option
def rotate(key: str, overlap_hours: int, data: Path) -> None:
    """Give KEY, named by id or name, a new secret and print it: once, it is stored nowhere."""

    def work(tx: Transaction) -> str:
        key_id, now = the_key(tx, key), now_ms()
        note(tx, SYSTEM, Deed(action="api_key.rotated", resource_id=key_id), now=now)
        return store.rotate_key(tx, key_id=key_id, now=now, overlap_ms=overlap_hours * _HOUR_MS)

    click.echo(in_transaction(data, work))

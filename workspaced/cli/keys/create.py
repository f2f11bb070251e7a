"""``workspaced keys create``."""

from __future__ import annotations

import click

from workspaced.cli.database import address_option, in_transaction
from workspaced.cli.failure import Failure
from workspaced.core.clock import now_ms
from workspaced.core.text import as_uuid, has_controls
from workspaced.security import key_store
from workspaced.security.audit_log import SYSTEM, AuditAction, note
from workspaced.security.key_format import key_id_of
from workspaced.security.permissions import EVERYWHERE, ROLES
from workspaced.storage.address import Address
from workspaced.storage.port import Transaction

_DAY_MS = 86_400_000


@click.command()
@click.argument("name")
@click.option("--role", type=click.Choice(list(ROLES)), required=True, help="What the key may do.")
@click.option("--workspace", default=EVERYWHERE, help="Id of the one workspace that it is for; default: all.")
@click.option("--days", type=click.IntRange(min=1), default=365, show_default=True, help="How long it is valid.")
@click.option("--guest", is_flag=True, help="It holds only in workspaces that let guests in.")
@click.option("--never-expires", is_flag=True, help="It is valid until it is revoked.")
@address_option
def create(
    name: str, role: str, workspace: str, days: int, address: Address, *, guest: bool, never_expires: bool
) -> None:
    """Make a key for NAME and print it: once, it is stored nowhere."""
    if not name.strip() or len(name) > 255 or has_controls(name):
        raise Failure("A key's name must have 1 to 255 characters, and no control characters.", 2)
    workspace_id = as_uuid(workspace) if workspace else EVERYWHERE
    if workspace_id is None:
        raise Failure(f"'{workspace}' is no workspace's id: it must be a UUID.", 2)
    now = now_ms()
    expires_at = None if never_expires else now + days * _DAY_MS

    def work(tx: Transaction) -> str:
        key = key_store.create_key(
            tx,
            name=name.strip(),
            role=role,
            now=now,
            expires_at=expires_at,
            workspace_id=workspace_id,
            guest=guest,
        )
        action = AuditAction(action="api_key.created", resource_id=key_id_of(key) or "", workspace_id=workspace_id)
        note(tx, SYSTEM, action, now=now)
        return key

    click.echo(in_transaction(address, work))

"""The newest epoch and attempt of each writer in a workspace (contract M11).

Both are read and written in the transaction of a request's work.
"""

from __future__ import annotations

from ingestd.wire.writer import Writer
from workspaced.storage.incremental_job import repeat
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements
from workspaced.storage.store import Store

_SQL = load_statements("workspaced.storage", "writers.sql")
_PORTION = 1_000
KEPT_DAYS = 400
"""A row that was not raised for this time is dropped: no request takes that long. A writer that sends later gets a new row."""


def raise_to(tx: Transaction, workspace: str, writer: Writer, *, now: int) -> tuple[Writer, bool]:
    """Raise the rank (epoch, attempt) of a writer to ``writer``; return the newest rank, and whether this call raised it.

    Until the transaction ends, no other transaction can raise the rank. ``now``: milliseconds since 1970. Nothing is stored for
    a workspace that does not exist.
    """
    values = {"workspace": workspace, "name": writer.name, "epoch": writer.epoch, "attempt": writer.attempt}
    row = tx.one(_SQL["find"], values)
    if row is None:
        if tx.run(_SQL["raise"], {**values, "now": now}):
            return writer, True
        # Another transaction has raised the rank meanwhile, or there is no such workspace.
        row = tx.one(_SQL["find"], values)
    return (writer if row is None else Writer(name=writer.name, epoch=row[0], attempt=row[1])), False


def raise_everywhere(tx: Transaction, writer: Writer, *, now: int) -> None:
    """Raise the rank of a writer in all workspaces that have no newer rank. ``now``: milliseconds since 1970."""
    values = {"name": writer.name, "epoch": writer.epoch, "attempt": writer.attempt, "now": now}
    tx.run(_SQL["raise_everywhere"], values)


def newest_epoch(reader: ReadTransaction, name: str) -> int:
    """Return the newest epoch of a writer in any workspace; 1 if no workspace has the writer."""
    return int(reader.existing(_SQL["newest_epoch"], {"name": name})[0])


async def drop_older(store: Store, *, before: int) -> int:
    """Drop the writers that were not raised since ``before`` (milliseconds since 1970), in batches; return their number."""
    values = {"before": before, "most": _PORTION}
    return await repeat(store, lambda tx: tx.run(_SQL["drop_older"], values), rows=_PORTION)

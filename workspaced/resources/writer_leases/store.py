"""Leases of writers in the database (contract M14)."""

from __future__ import annotations

from typing import NamedTuple

from ingestd.wire.writer import Writer
from workspaced.core.problems import ConflictProblem, NotFoundProblem
from workspaced.security.permissions import DATA_SINKS_PUSH, Principal
from workspaced.storage import writers
from workspaced.storage.database_clock import database_now
from workspaced.storage.port import ReadTransaction, Transaction
from workspaced.storage.statements import load_statements

_SQL = load_statements("workspaced.resources.writer_leases", "queries.sql")
_DAY_MS = 86_400_000
MOST_LEASES = 100
"""The maximum number of leases of one principal. Leases that ended long ago are dropped before a request is refused."""


class StoredLease(NamedTuple):
    """A row of a lease. ``ends_at``: milliseconds since 1970 (database clock). ``successor``: the next holder, or empty."""

    writer: str
    principal: str
    holder: str
    epoch: int
    ends_at: int
    successor: str


def find(reader: ReadTransaction, writer: str, principal: str) -> StoredLease | None:
    """Return the lease of a writer; None if it was never taken, or belongs to another principal."""
    row = reader.one(_SQL["find"], {"writer": writer})
    return StoredLease(*row) if row is not None and row[1] == principal else None


def milliseconds_left(reader: ReadTransaction, lease: StoredLease) -> int:
    """Return the time until a lease ends; 0 if it has ended."""
    return max(0, lease.ends_at - database_now(reader))


def take(tx: Transaction, writer: str, caller: Principal, *, holder: str, seconds: int, at: int) -> StoredLease:
    """Take a lease that no other process holds. Every older request of the writer is refused from now on.

    ``at``: the time of the request, in milliseconds since 1970.

    Raises:
        ConflictProblem: another process holds the lease, it belongs to another principal, or the principal has too many leases.
    """
    now = database_now(tx)
    lease = find(tx, writer, caller.name) or _created(tx, writer, caller.name, now)
    if lease.ends_at > now and lease.holder != holder:
        raise ConflictProblem("lease_held", f"{lease.holder} holds the lease for {lease.ends_at - now} ms more.")
    epoch = max(lease.epoch, writers.newest_epoch(tx, writer)) + 1
    lease = lease._replace(holder=holder, epoch=epoch, ends_at=now + seconds * 1_000, successor="")
    _set(tx, lease)
    raised = Writer(name=writer, epoch=epoch, attempt=0)
    if caller.may(DATA_SINKS_PUSH):
        writers.raise_everywhere(tx, raised, now=at)
    else:
        for workspace in sorted(caller.by_workspace):
            if caller.may(DATA_SINKS_PUSH, workspace):
                writers.raise_to(tx, workspace, raised, now=at)
    return lease


def renew(tx: Transaction, writer: str, principal: str, *, holder: str, epoch: int, seconds: int) -> StoredLease:
    """Extend a lease for its holder. A lease that has ended can also be extended, until another process takes it.

    Raises:
        ConflictProblem: another process has taken the lease.
    """
    lease = _held(tx, writer, principal, holder=holder, epoch=epoch)
    lease = lease._replace(ends_at=database_now(tx) + seconds * 1_000)
    _set(tx, lease)
    return lease


def release(tx: Transaction, writer: str, principal: str, *, holder: str, epoch: int, reserved_ms: int) -> StoredLease:
    """End a lease for its holder. If there is a successor, only the successor may take the lease for ``reserved_ms``.

    Raises:
        ConflictProblem: another process has taken the lease.
    """
    lease, now = _held(tx, writer, principal, holder=holder, epoch=epoch), database_now(tx)
    if lease.successor:
        lease = lease._replace(holder=lease.successor, ends_at=now + reserved_ms, successor="")
    else:
        lease = lease._replace(ends_at=now)
    _set(tx, lease)
    return lease


def ask(tx: Transaction, writer: str, principal: str, *, holder: str) -> StoredLease:
    """Ask the holder of a lease to release it to the process ``holder``.

    Raises:
        NotFoundProblem: the principal has no lease of this writer.
    """
    if (lease := find(tx, writer, principal)) is None:
        raise NotFoundProblem("lease_not_found", "This writer has no lease.")
    lease = lease._replace(successor=holder)
    _set(tx, lease)
    return lease


def _held(tx: Transaction, writer: str, principal: str, *, holder: str, epoch: int) -> StoredLease:
    lease = find(tx, writer, principal)
    if lease is None or (lease.holder, lease.epoch) != (holder, epoch):
        now = "No process holds the lease." if lease is None else f"{lease.holder} has it with epoch {lease.epoch}."
        raise ConflictProblem("lease_lost", f"The lease with this epoch has ended. {now}")
    return lease


def _created(tx: Transaction, writer: str, principal: str, now: int) -> StoredLease:
    tx.run(_SQL["drop_ended"], {"principal": principal, "before": now - writers.KEPT_DAYS * _DAY_MS})
    if tx.existing(_SQL["count"], {"principal": principal})[0] >= MOST_LEASES:
        raise ConflictProblem("too_many_leases", f"The principal has {MOST_LEASES} leases of other writers.")
    tx.run(_SQL["create"], {"writer": writer, "principal": principal})
    lease = find(tx, writer, principal)
    if lease is None:
        raise ConflictProblem("lease_of_another", "The lease of this writer belongs to another principal.")
    return lease


def _set(tx: Transaction, lease: StoredLease) -> None:
    tx.run(_SQL["set"], lease._asdict())

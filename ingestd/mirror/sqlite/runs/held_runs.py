"""The rows of held runs. The functions run inside the transactions of their callers."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import msgspec
import polars as pl

from ingestd.core.errors import RunNotHeld
from ingestd.core.guard import RunEffect
from ingestd.core.record import Cursor
from ingestd.mirror.port import Amendment, HeldRun, Removal
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.snapshots import digest_of, store_held_snapshot
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.runs.run_writer import RunState
from ingestd.mirror.sqlite.sql import SQL


class EndOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a complete reading, and the caller's reasons to hold the run; see `IntakeStore.finish_run`.

    ``cursor``: None only for a run that was rolled back after the cursor was reset. ``seen``: the row hashes; ``sections``: the
    sections to which they belong, see `ingestd.mirror.port.Snapshot`.
    """

    cursor: Cursor | None
    seen: RowHashes | None
    deletes: Removal
    partial: bool = False
    reasons: tuple[str, ...] = ()
    amendment: Amendment | None = None
    sections: pl.DataFrame | None = None


class KnownHold(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a partition's held run.

    ``same_mapping``: the partition's mapping has not changed since the run. ``current``: since that run, no partition of the
    pipeline has written or removed an entry. ``rolled_back``: a person rolled the run back, so its content stays held even if
    the guard would permit it. ``cursor``: None if the partition had no cursor; ``content``: empty if the content is not known.
    """

    run: int
    state: str
    since: float
    content: str
    cursor: Cursor | None
    retries: int
    same_mapping: bool
    current: bool
    rolled_back: bool


def hold_of(connection: sqlite3.Connection, partition: int) -> KnownHold | None:
    """Return the held, approved or discarded run of a partition."""
    row = connection.execute(SQL["held_of_partition"], (partition,)).fetchone()
    if row is None:
        return None
    *_, cursor, _, same, current, rolled_back = row
    return from_row(
        KnownHold,
        row,
        cursor=json.loads(cursor),
        same_mapping=bool(same),
        current=bool(current),
        rolled_back=bool(rolled_back),
    )


def decision_about(known: KnownHold | None, seen: RowHashes | None) -> str | None:
    """Return the state of the held run if this reading has the same content; else None.

    An undecided run counts only if no entry of the pipeline has changed since (``current``), except after a rollback.
    """
    if known is None or seen is None or not known.same_mapping:
        return None
    if known.state == "held" and not (known.current or known.rolled_back):
        return None
    return known.state if known.content == digest_of(seen) else None


def rollback_reasons(known: KnownHold | None) -> tuple[str, ...]:
    """Return the reason to hold a reading if a run with unknown content was rolled back; else an empty tuple."""
    if known is None or not known.rolled_back or not known.same_mapping or known.content or known.state == "approved":
        return ()
    return (f"Run {known.run} was rolled back, and it is not known whether the source has changed since.",)


def hold(
    connection: sqlite3.Connection,
    run: RunState,
    end: EndOfRun,
    *,
    effect: RunEffect,
    reasons: tuple[str, ...],
    now: float,
) -> HeldRun:
    """Hold a staged run; it replaces the partition's held run."""
    known = hold_of(connection, run.partition)
    drop_hold(connection, run.partition)
    row = {
        "run": run.id,
        "partition": run.partition,
        "since": known.since if known is not None and known.state != "discarded" else now,
        "reasons": json.dumps(reasons),
        "content": digest_of(end.seen) if end.seen is not None else "",
        "cursor": json.dumps(end.cursor),
        "deletes": end.deletes,
        "whole": int(run.whole),
        "partial": int(end.partial),
        "remapped": int(run.remapped),
        "mapped": run.mapped,
        "retries": run.retries,
        "created": effect.created,
        "updated": effect.updated,
        "removed": effect.removed,
        "rolled_back": int(bool(rollback_reasons(known))),
    }
    connection.execute(SQL["held_add"], row)
    if end.seen is not None:
        store_held_snapshot(connection, run.id, end.seen)
    return read_hold(connection, run.id)


def drop_hold(connection: sqlite3.Connection, partition: int) -> int | None:
    """Delete the partition's held run with its entries; return its number if no person has decided about it."""
    row = connection.execute(SQL["held_drop"], (partition,)).fetchone()
    if row is None:
        return None
    run, state = row
    drop_content(connection, run)
    return int(run) if state == "held" else None


def drop_content(connection: sqlite3.Connection, run: int) -> None:
    """Delete the entries and the row hashes of a held run."""
    for statement in ("staging_clear", "held_snapshot_clear"):
        connection.execute(SQL[statement], (run,))


def read_hold(connection: sqlite3.Connection, run: int) -> HeldRun:
    """Return a held, approved or discarded run.

    Raises:
        RunNotHeld: there is no such run; the message names the run that replaced it.
    """
    row = connection.execute(SQL["held_read"], (run,)).fetchone()
    if row is not None:
        return held_run(row)
    later = connection.execute(SQL["held_after"], (run,)).fetchone()
    if later is not None and later[0] > run:
        raise RunNotHeld(
            f"Run {run} is not held any more: the source was read again, and run {later[0]} replaced it. 'ingestd status' shows "
            f"why run {later[0]} is held."
        )
    raise RunNotHeld(f"Run {run} is not held. 'ingestd status' lists the held runs.")


def held_run(row: tuple[Any, ...]) -> HeldRun:
    """Return the held run in a row of ``held_read`` or ``held_list``."""
    return from_row(HeldRun, row, reasons=tuple(json.loads(row[4])))

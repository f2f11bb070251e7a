"""First readings for a sink that already has entries; when the sink is adopted, they are compared with the readings.

Entries of first readings stay pending until the first adoption of the sink, so a reading that the guard holds can be withdrawn.
After a withdrawal, the mirror has the content of the service. Until the adoption, the service's entries are in ``staging``,
with the negative id of the sink as their run. They are compared at the adoption, while no run can end.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping

import msgspec
import polars as pl

from ingestd.core.guard import Guard, RunEffect, hold_reasons
from ingestd.core.unit_factors import as_numbers
from ingestd.mirror.port import HeldRun, Removal
from ingestd.mirror.row_hashes import RowHashes
from ingestd.mirror.sqlite.entries.frames import read_frames
from ingestd.mirror.sqlite.entries.repeated_keys import RepeatedKeys
from ingestd.mirror.sqlite.entries.segments import json_rows, leave
from ingestd.mirror.sqlite.entries.snapshots import load_snapshot
from ingestd.mirror.sqlite.rows import from_row
from ingestd.mirror.sqlite.runs.held_runs import EndOfRun, hold
from ingestd.mirror.sqlite.runs.run_effect import PAGE, ChangeTally
from ingestd.mirror.sqlite.runs.run_finisher import RunFinisher
from ingestd.mirror.sqlite.runs.run_writer import RunState
from ingestd.mirror.sqlite.sql import SQL

_FOUND = {
    "partition": int,
    "key": str,
    "value": str,
    "data_type": str,
    "old_value": str,
    "old_type": str,
}
"""The columns of ``first_compared``: the entry that a partition names, and the entry of the service (``old``)."""


class _Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of a partition before the adoption; see ``first_readings``. ``cursor``: None if it was incomplete."""

    partition: int
    guard: str
    pending: int
    pipeline: str
    run: int
    cursor: str | None
    deletes: Removal
    repeats: int
    retries: int


class _Compared(msgspec.Struct):
    """Counts of a partition's entries that the service has: all, those with a numeric value, and those that differ."""

    before: int = 0
    numeric: int = 0
    tally: ChangeTally = msgspec.field(default_factory=ChangeTally)

    def effect(self, pending: int) -> RunEffect:
        """Return the effect of the reading. ``pending``: the number of pending entries of its partition."""
        return self.tally.effect(
            before=self.before, numeric=self.numeric, created=pending - self.tally.counts["updated"]
        )


class FirstReadings:
    """Compares the first readings of sinks. ``open_runs`` returns the open runs."""

    def __init__(
        self, finisher: RunFinisher, *, now: Callable[[], float], open_runs: Callable[[], Collection[RunState]]
    ) -> None:
        self.none_ending = finisher.none_ending
        self._now = now
        self._open_runs = open_runs

    def measure(self, reader: sqlite3.Connection, sink: int) -> Mapping[int, _Compared] | None:
        """Compare the entries that each partition names with the entries of the service; None if the service has none."""
        if not reader.execute(SQL["staging_any"], (-sink,)).fetchone()[0]:
            return None
        compared: defaultdict[int, _Compared] = defaultdict(_Compared)
        parameters = {"sink": sink, "found": -sink}
        for frame in read_frames(reader.execute(SQL["first_compared"], parameters), _FOUND):
            for (partition,), part in frame.group_by("partition"):
                _add(compared[int(str(partition))], part)
        return compared

    def hold(
        self, connection: sqlite3.Connection, sink: int, compared: Mapping[int, _Compared] | None
    ) -> list[HeldRun]:
        """Hold the readings for which the guard finds reasons; open runs are compared when they end.

        ``compared``: the result of `measure`. Call both methods within the same `none_ending` context, so that no run ends
        between the calls. Each held reading is withdrawn in one transaction.
        """
        held = self._hold(connection, sink, compared) if compared is not None else []
        connection.execute(SQL["sink_found"], {"sink": sink, "found": compared is not None})
        return held

    def _hold(self, connection: sqlite3.Connection, sink: int, compared: Mapping[int, _Compared]) -> list[HeldRun]:
        running = {run.partition: run for run in self._open_runs() if run.sink == sink and run.snapshot}
        parameters = {"sink": sink, "found": -sink}
        contradicting: list[tuple[_Reading, RunEffect, tuple[str, ...]]] = []
        runs: dict[int, int] = {}
        for row in connection.execute(SQL["first_readings"], parameters).fetchall():
            reading = from_row(_Reading, row)
            guard = msgspec.json.decode(reading.guard, type=Guard)
            effect = compared.get(reading.partition, _Compared()).effect(reading.pending)
            reasons = hold_reasons(guard, effect)
            current = running.get(reading.partition)
            if current is not None:
                if (
                    not current.staged
                ):  # when the run ends, the guard also decides about the entries that the run has written so far
                    runs[current.partition] = current.id
                    current.staged = current.only_guarded = True
                    current.fresh = False
                current.guard = guard
                current.outdated = current.outdated or bool(reasons)
            if reasons and reading.partition not in runs:
                runs[reading.partition] = reading.run
                contradicting.append((reading, effect, reasons))
        if not runs:
            return []
        staged = _withdraw(connection, sink, runs)
        held = []
        for reading, effect, reasons in contradicting:
            end = _forget_reading(connection, reading)
            if end is not None:
                run = _run_of(reading, sink, staged[reading.partition])
                held.append(hold(connection, run, end, effect=effect, reasons=reasons, now=self._now()))
        connection.execute(SQL["first_restore"], parameters)
        return held


def note_found(connection: sqlite3.Connection, sink: int, entries: pl.DataFrame) -> None:
    """Store entries of the service (key, value, data_type) for `FirstReadings.measure`."""
    rows = entries.unique(subset="key", keep="last").select(
        "key", "value", pl.col("data_type").fill_null(""), row_hash=pl.lit(0), position=pl.lit(None, dtype=pl.Int64)
    )
    connection.execute(SQL["found_write"], (-sink, json_rows(rows)))


def _add(compared: _Compared, part: pl.DataFrame) -> None:
    numbers = as_numbers(part["old_value"])
    compared.before += part.height
    compared.numeric += part.height - numbers.null_count()
    differs = pl.col("value").ne_missing(pl.col("old_value")) | (pl.col("data_type") != pl.col("old_type"))
    compared.tally.add_updates(part.filter(differs))


def _forget_reading(connection: sqlite3.Connection, reading: _Reading) -> EndOfRun | None:
    """Forget the reading of a partition, and return its end; None if it was incomplete, because it is then repeated anyway."""
    seen = RowHashes.of(load_snapshot(connection, reading.partition))
    # Other partitions of the pipeline did not see this change, so their next reading can't use differences.
    connection.execute(SQL["pipeline_changed"], (reading.partition,)).fetchall()
    for statement in ("first_reading_withdrawn", "snapshot_clear"):
        connection.execute(SQL[statement], (reading.partition,))
    connection.execute(SQL["run_withdrawn"], (reading.run,))
    if reading.cursor is None:
        connection.execute(SQL["staging_clear"], (reading.run,))
        return None
    return EndOfRun(cursor=json.loads(reading.cursor), seen=seen, deletes=reading.deletes)


def _run_of(reading: _Reading, sink: int, staged: int) -> RunState:
    return RunState(
        id=reading.run, partition=reading.partition, pipeline=reading.pipeline, sink=sink, snapshot=True, whole=True, staged=True,
        remapped=False, has_rejected=False, retries=reading.retries, repeated_keys=RepeatedKeys(reading.partition),
        mapped=staged + reading.repeats,
    )  # fmt: skip


def _withdraw(connection: sqlite3.Connection, sink: int, runs: Mapping[int, int]) -> Counter[int]:
    """Move the pending entries of partitions to staging, and copy their other entries. Return the counts by partition.

    Other partitions that name keys of the moved entries are read again.
    """
    pending = {segment for (segment,) in connection.execute(SQL["pending_segments"], (sink,))}
    staged, lost, others, after = Counter[int](), Counter[int](), set[int](), ""
    while rows := connection.execute(SQL["first_entries"], (sink, after, PAGE)).fetchall():
        after = rows[-1][1]
        own = [row for row in rows if row[0] in runs]
        moved = [(key, segment) for _, key, *_, segment in own if segment in pending]
        staged.update(partition for partition, *_ in own)
        lost.update(segment for _, segment in moved)
        connection.executemany(SQL["first_stage"], ((runs[partition], *entry) for partition, *entry, _ in own))
        connection.executemany(SQL["first_withdraw"], ((sink, key) for key, _ in moved))
        keys = {"sink": sink, "keys": json.dumps([key for key, _ in moved])}
        connection.execute(SQL["first_forget_former"], keys)
        others.update(one for (one,) in connection.execute(SQL["first_forget_names"], keys))
    connection.executemany(SQL["also_named_end"], [(partition, sink) for partition in sorted(runs)])
    connection.executemany(SQL["partition_lost_entries"], [(one, sink) for one in sorted(others - runs.keys())])
    leave(connection, lost)
    return staged

"""Entries that the records of a partial reading do not produce any more, found by the positions of the records.

An entry has the position of the last record that produced it. If the record vanishes, the entry can be removed only if no other
record produces it, too. `RunState.positions_exact` is True if this is known: a whole reading has mapped every record without a
repeated key, and since then no entry has moved to another record.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Literal

from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.runs.held_runs import EndOfRun
from ingestd.mirror.sqlite.runs.run_effect import PAGE
from ingestd.mirror.sqlite.runs.run_writer import RunState
from ingestd.mirror.sqlite.sql import SQL


def is_undecided(run: RunState, end: EndOfRun) -> bool:
    """Return True if a partial reading has found every change, but does not show which record produces each entry.

    If it returns True, the partition must be read whole. Call it after the entries of the run are written.
    """
    amendment = end.amendment
    if amendment is None or not amendment.is_complete or end.deletes != "remove":
        return False
    return amendment.positions is None or not run.positions_exact or run.moved or run.repeats


def find_unnamed(
    reader: sqlite3.Connection,
    run: RunState,
    end: EndOfRun,
    *,
    statement: Literal["entries_at_positions", "also_named_at_positions"] = "entries_at_positions",
) -> list[str]:
    """Return the sorted keys of entries at the positions of a partial reading that its records do not produce.

    ``statement`` selects the keys of the partition's entries, or the keys that it names although another partition owns them.
    """
    amendment = end.amendment
    if amendment is None or amendment.positions is None or end.deletes != "remove" or not run.positions_exact:
        return []
    found: set[str] = set()
    positions = {*amendment.positions.to_list()}.difference(amendment.kept)
    for page in pages(sorted(positions), PAGE):
        row = {"partition": run.partition, "sink": run.sink, "positions": json.dumps(page)}
        found.update(key for (key,) in reader.execute(SQL[statement], row))
    return sorted(found.difference(amendment.keys))

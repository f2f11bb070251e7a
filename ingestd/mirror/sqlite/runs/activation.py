"""Activation of the configured pipelines, at a start and after a reload."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping

from ingestd.mirror.sqlite.entries.claimed_segments import ClaimedSegments
from ingestd.mirror.sqlite.entries.entry_writer import ADOPTED, end_inactive_conflicts, pass_on
from ingestd.mirror.sqlite.entries.ownership import note_sources, rename_pipelines
from ingestd.mirror.sqlite.entries.shared_keys import describe_conflicts, freed_keys, keys_in_conflict
from ingestd.mirror.sqlite.entries.target import WriteTarget
from ingestd.mirror.sqlite.pages import pages
from ingestd.mirror.sqlite.runs.run_effect import PAGE
from ingestd.mirror.sqlite.sql import SQL


def configure_pipelines(
    connection: sqlite3.Connection,
    pipelines: Collection[str],
    sources: Mapping[str, str],
    *,
    claimed: ClaimedSegments,
    at: float,
) -> tuple[list[tuple[str, str]], set[int]]:
    """Make ``pipelines`` the active pipelines. Return the renamed pipelines, and the sinks with new pending entries.

    For ``sources`` and the renamed pipelines, see `IntakeStore.activate`; for ``claimed`` and ``at``, see `WriteTarget`.
    """
    renamed = rename_pipelines(connection, sources)
    connection.executemany(SQL["pipeline_ensure"], [(name,) for name in pipelines])
    names = json.dumps(sorted(pipelines))
    connection.execute(SQL["pipeline_activate"], (names, names))
    note_sources(connection, sources)
    # If another pipeline names the key of an entry that no source explains now, it takes the entry over without a new reading.
    sinks: set[int] = set()
    for sink, keys in freed_keys(connection):
        target = WriteTarget(connection=connection, sink=sink, partition=ADOPTED, run=0, claimed=claimed, at=at)
        for page in pages(keys, PAGE):
            _, updated = pass_on(target, page)
            sinks |= {sink} if updated else set()
    end_inactive_conflicts(connection)
    if renamed:
        for sink, keys in keys_in_conflict(connection):
            describe_conflicts(connection, sink, keys)
    return renamed, sinks

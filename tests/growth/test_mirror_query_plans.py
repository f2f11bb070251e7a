"""Every statement of the mirror finds its rows by an index: no scan and no loose search of a growing table.

SQLite has no statistics in a state file (the daemon never runs ANALYZE), so its plan of a statement is the same for an empty
file and for one of millions of rows, and EXPLAIN QUERY PLAN on an empty file shows it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from ingestd.mirror.sqlite.sql import SQL
from ingestd.mirror.sqlite.state_file.connection import StateFile

SMALL = {
    "sink": "as many as the configuration names",
    "pipeline": "as many as the configuration names",
    "drift_check": "a row for each sink",
    "blocker": "a row for each sink",
    "pruning": "one row",
    "failed_part": "a row for each part of the daemon that failed",
    "bounded": "one row",
    "rollback": "one row, while a rollback is written",
    "identity": "one row",
    "doubt": "a row for each sink",
    "sqlite_sequence": "a row for each table with AUTOINCREMENT",
}
"""Tables that do not grow with the data; every other table does, temporary ones too."""

SELECTIVE: dict[str, list[tuple[str, ...]]] = {
    "entry": [("partition", "position", "sink")],
    "snapshot": [("partition",)],
    "wait": [("partition",), ("segment",)],
    "staging": [("run",)],
    "held_snapshot": [("run",)],
    "refusal": [("sink", "key")],
    "rejected": [("partition", "row_hash"), ("partition", "position"), ("sink", "key")],
    "run": [("<expr>",)],
    "seen": [("key",)],
    "former": [("sink", "key")],
    "also_named": [("sink", "key"), ("partition", "position")],
}
"""Selective columns besides whole unique keys: a value has few rows, or rows of one piece of work."""

READS_ALL = {
    # -- at the start of the daemon, once
    "also_named_freed": "at a start or reload: the names besides those of the owners, each with its entry",
    "conflicts_of_inactive": "at a start or reload: the conflicts of pipelines that are not configured",
    "conflicts_all": "at a start or reload with a renamed pipeline: the conflicts, in an index",
    "partitions_of": "at a reload; the partitions of changed pipelines, in an index",
    "refusals_forget": "at start; the table is bounded by what is rejected",
    "runs_interrupted": "at start; the runs that a crash left open (a partial index)",
    "staging_clear_all": "at start; the entries of interrupted runs and, in a subquery, the held runs",
    "partitions_acknowledgeable": "in a copy of the state file, the partitions that are not acknowledged (a partial index)",
    "touched_at_start": "at start, and only partitions that are not acknowledged (a partial index)",
    "entries_before": "the entries of a partition, once at the end of a run that the guard would hold if it had few entries",
    # -- at the first adoption of a sink, once
    "first_readings": "the partitions of the sink, in an index",
    "first_entries": "a page of the entries of one sink, if a reading is withdrawn",
    "also_named_end": "the names of one partition, in an index",
    "check_of_author": "the entries of one sink, once after its adoption; those read back by key",
    # -- totals and lists for people
    "status_sinks": "totals of all sinks, for `status`: one count of the entries of each, one pass over what is rejected",
    "entries_of_sink": "a number up to a limit, for the page of a pipeline",
    "status_pipelines": "totals of all pipelines, for `status`: each partition and rejected row once, in indexes",
    "pipeline_last_runs": "of each pipeline: the newest partition in the order of an index, and whether it is rejected",
    "partition_withheld": "at most one row of each table (one by a partial index)",
    "partition_is_rejected": "at most one row (a partial index), and only for a partition with a held run",
    "status_run": "one run, and whether its partition is rejected: at most one row (a partial index)",
    "status_reading": "for `status`: the runs of one partition, the newest first, until one had records",
    "status_notices": "for `status`: the runs with a notice (a partial index), each with the last run of its pipeline",
    "rejected_total": "a total, in an index",
    "rejected_by_pipeline": "totals, in an index; then one row for each partition with rejections",
    "backlog": "the first segment of each sink, in the order of an index",
    "cursors_of": "a person's list: the partitions of one pipeline, each with its own pending segments and rejected rows",
    "partitions_newest": "the newest partitions of a pipeline to a limit, in the order of an index",
    "runs_newest": "the newest runs of a partition to a limit, in the order of an index",
    "rollback_runs": "a person's rollback: the runs, in the order of their ids, from the named one on",
    "rollback_keys": "a person's rollback: all entries of its sinks, in pages by key, and their former values",
    "rollback_horizon": "a person's rollback: the first and the last row",
    "rollback_names": "a person's rollback: the names besides those of the owners",
    "held_list": "a person's list: at most one run of each partition, which the guard holds",
    "check_entries": "a total of what was read back",
    "check_counts": "a total of what was found",
    "check_holds": "whether there is any: the first row ends it",
    "rejected_selected": "a person's selection by text or pattern; pages continue after the last id",
    "rejections_newest": "the newest, to a limit, in the order of the primary key",
    "drift_checks": "a row for each sink, and the first partition that writes to it",
    "drift_open": "a row for each sink, and the first finding without a reaction (a partial index)",
    "drift_page": "a page of a person's list, to a limit, in the order of the primary key",
    "history_partition": "`why` of one file: its own pending segments and rejected rows",
    "history_reading": "`why` of one file: its own runs, the newest first, until one brought content",
    "planned_pending": "a person's plan, on a private copy: the segments of pending entries, without their bodies",
    "planned_entries": "a person's plan, on a private copy: counts the entries of a partition in its sink",
    "planned_rejections": "a person's plan, to a limit: what is rejected of one partition",
    "planned_unexplained": "a person's plan, on a private copy: counts a whole sink",
    "planned_segment": "one row, in the order of the primary key",
    # -- only while a pipeline is paused
    "pauses": "totals, for `status`: the partitions of paused pipelines, each with its pending segments",
    "lanes": "the pending segments of each sink, without their bodies, for each paused pipeline",
    "lane": "as lanes, of one sink",
    # -- work that concerns a whole sink or a whole partition, done once for it
    "sink_rival": "when a lane finds its sink: the sinks with its id, and the first partition that an active pipeline reads",
    "sink_forget_segments": "deletes what it reads: the service has lost the sink, and everything in it is sent again",
    "sink_forget_removed": "as sink_forget_segments",
    "sink_forget_adopted": "as sink_forget_segments",
    "rejected_of_sink": "as sink_forget_segments",
    "sink_page": "a page of the sink, to a limit, in the order of the primary key",
    "entries_of_partition": "once for a whole reading of a source with `deletes: remove`, which is as long",
    "entries_unstaged": "once for a whole reading of a guarded source with `deletes: remove`, which is as long",
    "also_named_hashes": "once for a whole reading: the names of the partition besides those of the owners",
    "also_named_left_over": "as entries_left_over",
    "segments_of_unknown_sink": "once for a partition that writes another sink: its own pending segments",
    "also_named_elsewhere": "once for a partition that writes another sink or has another mapping",
    "also_named_prune": "a pruning: deletes what it reads",
    "kept_by_names": "a pruning",
    "rejected_rows": "once for a whole reading, which maps all of these again",
    "rejected_corrected": "once for a whole reading, which maps all of these again",
    "retried_hashes": "what a person asked to be mapped again (a partial index)",
    "rejected_retried_corrected": "what a person asked to be mapped again (a partial index)",
    "rejected_read_again": "what a person asked to be mapped again (a partial index)",
    "rejected_unreadable_read_again": "what a person asked to be mapped again (a partial index)",
    "retried_stored": "what a person asked to be mapped again (a partial index), to a limit",
    "rejected_ids": "the receipt of an archived file lists all that was rejected of it",
    "rejected_count": "the receipt of an archived file counts all that was rejected of it",
    "chosen_oldest": "a page of what is deleted, in the order of an index",
    "chosen_old": "a page of what is deleted, in the order of an index",
    "attempt_prune": "deletes what it reads: attempts beyond the newest",
    "former_drop_oldest": "deletes what it reads: former values beyond the newest",
    # -- pruning reads everything once, in as many steps as there are runs, concurrently with the writer
    "kept_by_values": "a pruning",
    "kept_partitions_of_values": "a pruning",
    "kept_by_entries": "a pruning",
    "kept_partitions_of_entries": "a pruning",
    "kept_segments_of_entries": "a pruning",
    "kept_by_former": "a pruning",
    "kept_partitions_of_former": "a pruning",
    "delivered_to_prune": "a pruning",
    "kept_by_rejected": "a pruning",
    "kept_by_held": "a pruning",
    "kept_partitions_of_held": "a pruning",
    "kept_partitions_of_rejected": "a pruning",
    "kept_partitions_of_segments": "a pruning",
    "kept_partitions_of_drift": "a pruning",
    "kept_newest_partitions": "a pruning",
    "partitions_to_prune": "a pruning: the partitions that are gone (a partial index)",
    "runs_to_prune": "a pruning",
    "runs_left": "a pruning",
    "partition_runs_prune": "a pruning: a page of what it deletes, in the order of an index",
    "partition_prune": "the check of its foreign key: the runs of the partition. None is left",
    "partition_still_prunable": "the first row that it finds",
    "partitions_beyond": "the newest partitions of a pipeline to a fixed number, in the order of an index",
    "partitions_before": "a page, to a limit, in the order of an index",
    # -- the check of a sink reads the sink and its entries once
    "gone_until": "a page, to a limit, in the order of the primary key",
    "drift_until": "a page, to a limit, in the order of the primary key",
    "dropped_until": "a page, to a limit, in the order of the primary key",
    "gone_clear": "deletes what it reads, a page of what one check of the sink has noted",
    "check_compare": "compares a whole sink",
    "check_pending": "compares the pending entries of a whole sink, once after a take-over",
    "check_added": "compares a whole sink",
    "check_unnamed": "compares a whole sink",
    "check_findings": "what a comparison has found",
    "check_unnamed_changed": "what a comparison has found",
    "check_unnamed_vanished": "what a comparison has found",
    "drift_over": "once for each check of the sink; a page of what the last check had found",
    "dropped_forget": "once for each check of the sink; a page of what a person has dropped",
    "pending_segments": "once for each check of the sink; keys of an index only",
    # -- ownership: once after a start, an adoption or a change of the configuration
    "pipeline_sources": "at start; the first partition of each pipeline",
    "pipeline_forget": "the check of its foreign key: a pipeline without partitions",
    "partitions_retire": "at start, for a pipeline that reads another source now: it changes what it reads",
    "pipelines_unread_of_sink": "once for each adoption of the sink, which reads the whole sink",
    "pipeline_adopted_at": "the newest partition of a pipeline, in the order of an index",
    "sink_ownership": "once for each sink after the start and after each adoption",
    "sink_unread": "for `status`: partitions of a sink, up to the first of a pipeline that was not read",
    "sinks_of_pipelines": "a person's list; the first partition of each pipeline in a sink",
    "unexplained_count": "counts a whole sink: for `status`, and once after the start if the configuration removes such entries",
    "unexplained_page": "a page of a person's list, to a limit, in the order of the primary key",
    "entries_left_over": "once for the first whole reading with a new mapping, which maps everything",
    "check_authors": "compares a whole sink",
    "check_unexplained": "compares a whole sink",
    "drift_forget_added": "once for a sink that is in doubt; a page of what was found",
    # -- the rows that are read are the rows to be processed
    "partitions_touched": "the partitions that were touched since the last look, a page",
    "chosen_partitions": "what a person has chosen, a page",
    "chosen_remember_dropped": "what a person has chosen, a page",
    "chosen_drop_refusals": "what a person has chosen, a page",
    "run_forget_idle": "the runs of a partition that changed nothing; it leaves none (a partial index)",
    "staging_clear_partition": "the runs of a partition that have not ended (a partial index)",
    "rejected_partition": "at most one row of a partition (a partial index)",
    "rejected_partitions": "the partitions that are rejected as a whole, which are few (a partial index)",
    "rejected_any": "the first row that it finds",
    "rejected_any_entry": "the first row that it finds",
    "keys_in_range": "the first row that it finds",
    "snapshots_drop_old": "the newest partitions of a pipeline to a fixed number, in the order of an index",
    "segments_pending": "a page, to a limit, in the order of the index",
    "chosen_entries": "what a person has chosen, a page",
    "drift_named": "a page, to a limit, in the order of the primary key",
    "drift_added": "a page, to a limit, in the order of the primary key",
}
"""Statements that may read more than a few rows of a growing table, each with the reason.

Even these must not scan a table again for each row of another (`scanned again`), nor sort a page (`sorted`).
"""

POLLED = ("status_pipelines", "rejected_by_pipeline", "rejected_total")
"""Totals that a monitoring system asks for every few seconds, as metrics or for the health of the daemon."""

_STEP = re.compile(
    r"(?P<verb>SCAN|SEARCH) (?P<table>[\w.]+)(?: EXISTS)?(?: USING (?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?"
    r"(?:INDEX \w+|PRIMARY KEY|INTEGER PRIMARY KEY))?(?: \((?P<terms>.*)\))?"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One loop of a plan. ``inner``: it runs again for each row of an outer loop."""

    detail: str
    inner: bool


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A connection to a state file with every temporary table that a statement names."""
    path = tmp_path_factory.mktemp("state") / "state.db"
    with closing(StateFile(path)) as state, state.writing() as connection:
        _prepare(connection)
        yield connection


def _prepare(connection: sqlite3.Connection) -> None:
    for name in [name for name, text in SQL.items() if text.startswith("CREATE")]:
        connection.execute(SQL[name])


@pytest.mark.parametrize("name", [name for name, text in SQL.items() if not text.startswith(("CREATE", "DROP"))])
def test_a_statement_reads_only_its_own_rows(name: str, state: sqlite3.Connection) -> None:
    found = list(_mistakes(state, SQL[name]))
    worst = [mistake for mistake in found if mistake.startswith("again")]
    assert not worst, f"{name} scans a table for each row of another: {worst}"
    if name not in READS_ALL:
        assert not found, f"{name} reads more than it needs: {found}. Its plan: {plan(state, SQL[name])}"


def test_every_exception_belongs_to_a_statement_that_needs_it(state: sqlite3.Connection) -> None:
    needless = [name for name in READS_ALL if name not in SQL or not list(_mistakes(state, SQL[name]))]
    assert not needless


@pytest.mark.parametrize("name", POLLED)
def test_a_total_that_is_polled_reads_only_indexes(name: str, state: sqlite3.Connection) -> None:
    tables, known = _tables(SQL[name]), state.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    growing = {table for (table,) in known} - SMALL.keys()
    matches = [(step.detail, _STEP.match(step.detail)) for step in plan(state, SQL[name])]
    steps = [detail for detail, match in matches if match and tables.get(match["table"], match["table"]) in growing]
    assert steps
    assert not [one for one in steps if "COVERING INDEX" not in one and "INTEGER PRIMARY KEY" not in one]


@pytest.mark.parametrize(
    ("statement", "mistake"),
    [
        (
            "UPDATE entry SET row_hash = j.value FROM json_each(?) j WHERE sink = ? AND entry.key = j.key",
            "again SCAN j",
        ),
        ("SELECT * FROM entry WHERE sink = ?", "loose SEARCH entry"),
        ("SELECT * FROM entry e WHERE e.key = ?", "SCAN e"),
        ("SELECT * FROM rejected WHERE sink = ?", "SCAN rejected"),
        ("SELECT * FROM sink k JOIN entry e ON e.value = k.name", "(SCAN e|SEARCH e USING AUTOMATIC)"),
        ("SELECT * FROM rejected WHERE partition = ? ORDER BY id LIMIT 5", "sorted"),
    ],
)
def test_a_statement_that_grows_is_found(statement: str, mistake: str, state: sqlite3.Connection) -> None:
    assert any(re.search(mistake, found) for found in _mistakes(state, statement))


def plan(connection: sqlite3.Connection, statement: str) -> list[Step]:
    """Return the loops of a statement, each with whether it is an inner one."""
    text = re.sub(r"--[^\n]*", "", statement)
    named = dict.fromkeys(re.findall(r":([a-z]\w*)", text))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", named or (None,) * text.count("?")).fetchall()
    steps, outer = [], set[int]()
    for _, parent, _, detail in rows:
        if detail.startswith(("SCAN", "SEARCH")):
            steps.append(Step(detail, inner=parent in outer))
            outer.add(parent)
        elif detail.startswith("USE TEMP B-TREE FOR"):
            steps.append(Step(detail, inner=False))
    return steps


def _mistakes(connection: sqlite3.Connection, statement: str) -> Iterator[str]:
    tables = _tables(statement)
    limited = re.search(r"\bLIMIT\b", statement) is not None
    growing_search = False
    for step in plan(connection, statement):
        match = _STEP.match(step.detail)
        if match is None:
            if limited and growing_search and "ORDER BY" in step.detail:
                yield f"sorted before the limit: {step.detail}"
            continue
        table = tables.get(match["table"].removeprefix("temp."), match["table"].removeprefix("temp."))
        if table in SMALL or "CONSTANT ROW" in step.detail:
            continue
        if " AUTOMATIC " in step.detail:  # an index for this statement alone, of all rows
            growing_search = True
            yield step.detail
        elif match["verb"] == "SCAN":
            if step.inner:
                yield f"again {step.detail}"
            elif "VIRTUAL TABLE" not in step.detail:
                growing_search = True
                yield step.detail
        elif match["terms"] is not None and not _is_selective(connection, table, match["terms"]):
            growing_search = True
            yield f"loose {step.detail}"


def _is_selective(connection: sqlite3.Connection, table: str, terms: str) -> bool:
    equal = {term.removesuffix("=?") for term in terms.split(" AND ") if term.endswith("=?")}
    return any(equal >= set(key) for key in [*_unique_keys(connection, table), *SELECTIVE.get(table, ())])


def _unique_keys(connection: sqlite3.Connection, table: str) -> list[tuple[str, ...]]:
    keys: list[tuple[str, ...]] = [("rowid",)]
    columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (table,)).fetchall()
    if key := tuple(name for name, order in columns if order):
        keys.append(key)
    for (index,) in connection.execute('SELECT name FROM pragma_index_list(?) WHERE "unique"', (table,)).fetchall():
        named = connection.execute("SELECT name FROM pragma_index_info(?)", (index,)).fetchall()
        keys.append(tuple(row[0] for row in named))
    return keys


def _tables(statement: str) -> dict[str, str]:
    """Return the tables of a statement by alias."""
    words = r"(?:FROM|JOIN|INTO|UPDATE)\s+(?:temp\.|main\.)?(\w+)(?:\([^)]*\))?\s+(?:AS\s+)?(\w+)"
    return {alias: table for table, alias in re.findall(words, statement)}

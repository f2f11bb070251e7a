"""The size of the state file is bounded, and only unneeded rows are deleted."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import polars as pl

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.mirror.sqlite.entries.snapshots import KEPT
from ingestd.mirror.sqlite.runs.pruner import RUNS_KEPT
from tests.support.scripted_source import Row, Script, ScriptedConnector


def read(path: Path, script: Script) -> SqliteMirror:
    mirror = SqliteMirror.open(path)
    mirror.intake.activate(["p"])
    Reader(
        pipeline="p", connector=ScriptedConnector(script), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
        sink=SinkAddress(workspace="w", by="label", name="s"), mirror=mirror.intake, emit=lambda event: None,
    ).read_pass()  # fmt: skip
    return mirror


def test_old_runs_without_effect_are_pruned_and_origins_are_kept(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    read(tmp_path / "state.db", script).close()
    database = sqlite3.connect(tmp_path / "state.db")
    with database:
        database.executemany(
            "INSERT INTO run (partition, started, ended, created) VALUES (1, ?, ?, 1)",
            [(n, n) for n in range(RUNS_KEPT + 100)],
        )
    script.write("b", [{"k": "y", "v": "1"}])
    mirror = read(tmp_path / "state.db", script)
    assert database.execute("SELECT count(*) FROM run").fetchone()[0] == RUNS_KEPT + 1
    database.close()
    (origin,) = mirror.status.origins("x")
    assert origin.read_at is not None
    assert origin.facts["file.name"] == "a"
    mirror.close()


def test_a_run_that_a_crash_interrupted_is_ended_at_the_next_start(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    read(tmp_path / "state.db", script).close()
    database = sqlite3.connect(tmp_path / "state.db")
    with database:
        database.execute("INSERT INTO run (partition, started, created) VALUES (1, 7, 1)")
    read(tmp_path / "state.db", script).close()
    ended, failure = database.execute("SELECT ended, failure FROM run WHERE started = 7").fetchone()
    database.close()
    assert ended == 7
    assert "ended" in failure


def test_the_run_that_named_an_entry_found_in_the_service_is_kept(tmp_path: Path) -> None:
    script = Script()
    script.write("a", [{"k": "x", "v": "1"}])
    mirror = read(tmp_path / "state.db", script)
    held = pl.DataFrame({"key": ["y"], "value": ["1"], "data_type": ["scalar"]})
    asyncio.run(mirror.delivery.adopt(1, held))
    mirror.close()
    contents: list[list[Row]] = [[{"k": "y", "v": "1"}], []]
    for rows in contents:
        script.write("b", rows)
        mirror = read(tmp_path / "state.db", script)
        (origin,) = mirror.status.origins("y")
        assert origin.read_at is not None
        assert origin.facts["file.name"] == "b"
        mirror.close()


def test_only_the_latest_snapshots_are_kept_and_a_partition_without_one_is_read_whole(
    tmp_path: Path,
) -> None:
    script = Script()
    script.write("first", [{"k": "x", "v": "1"}])
    read(tmp_path / "state.db", script).close()
    database = sqlite3.connect(tmp_path / "state.db")
    with database:
        rows = [(f"later-{n}", n) for n in range(KEPT)]
        database.executemany(
            "INSERT INTO partition (pipeline, sink, name, digest, last_run) VALUES (1, 1, ?, '', 2 + ?)", rows
        )
        database.execute("INSERT INTO run (id, partition, started) VALUES (5000, 1, 0)")
    script.write("second", [{"k": "y", "v": "1"}])
    read(tmp_path / "state.db", script).close()
    held = {name for (name,) in database.execute("SELECT name FROM snapshot JOIN partition ON id = snapshot.partition")}
    database.close()
    assert held == {"second"}, "it was read last; of the other partitions only the first had a snapshot"
    script.write("first", [{"k": "x", "v": "2"}])
    mirror = read(tmp_path / "state.db", script)
    assert [origin.value for origin in mirror.status.origins("x")] == ["2"]
    mirror.close()

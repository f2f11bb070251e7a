"""A process dies at every statement of a reading that removes rejected records; when they return, none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from tests.contract.mirror_deliverable import SINK
from tests.support.crashing_sqlite import each_death
from tests.support.scripted_source import Row, Script, ScriptedConnector

BAD: list[Row] = [{"k": "", "v": str(number)} for number in range(3)]
GOOD: list[Row] = [{"k": "k", "v": "1"}]


def read(mirror: SqliteMirror, script: Script) -> None:
    mirror.intake.activate(["pipe"])
    mapping = Mapping([EntrySpec(key="{k}", value="{v}")])
    connector = ScriptedConnector(script)
    Reader(
        pipeline="pipe", connector=connector, mapping=mapping, sink=SINK, mirror=mirror.intake, emit=lambda _: None
    ).read_pass()


def test_records_that_come_back_after_a_crash_are_rejected_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.run_finisher.PAGE", 1)
    monkeypatch.setattr("ingestd.mirror.sqlite.runs.absent_entries.PAGE", 1)
    template = tmp_path / "template.db"
    script = Script(deletes="remove")
    script.write("p", GOOD + BAD)
    mirror = SqliteMirror.open(template)
    read(mirror, script)
    assert mirror.status.count(Selection()) == len(BAD)
    mirror.close()
    gone = set()
    script.write("p", GOOD)
    for crash_point, mirror in each_death(template, tmp_path, lambda mirror: read(mirror, script)):
        gone.add(mirror.status.count(Selection()))
        script.write("p", GOOD + BAD)
        read(mirror, script)
        assert mirror.status.count(Selection()) == len(BAD), (crash_point.at, crash_point.statement)
        script.write("p", GOOD)
    assert gone == {0, 1, 2, 3}, "it also died between two transactions"

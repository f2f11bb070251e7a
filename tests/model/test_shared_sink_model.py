"""Several pipelines on one sink: an entry exists as long as one source names it, whatever is saved, moved, renamed or reloaded.

The sources are scripts that pipelines read. A reload or a restart gives other pipelines the sources: one is added, removed or
renamed, takes over the source of another pipeline, or exchanges sources with it. The service is a dictionary. At rest, it
has exactly the keys that a configured source names, each with a value of such a source.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.port import Claim, RejectedEntry
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Script, ScriptedConnector

T = TypeVar("T")
SINK = SinkAddress(workspace="w", by="label", name="s")
MAPPING = Mapping([EntrySpec(key="{k}", value="{v}")])
FILES = {"a": ("a.csv",), "b": ("b.csv",), "c": ("c1.csv", "c2.csv")}
"""The sources, and the partitions of each."""
PIPELINES = ("p1", "p2", "p3")
KEYS = st.sampled_from(["x", "y", "z"])
ROWS = st.lists(st.fixed_dictionaries({"k": KEYS, "v": st.sampled_from(["1", "2"])}), max_size=4)
CONFIGURATIONS = st.tuples(st.permutations(sorted(FILES)), st.lists(st.booleans(), min_size=3, max_size=3)).map(
    lambda drawn: {name: source for name, source, used in zip(PIPELINES, *drawn, strict=True) if used}
)
EVERYTHING = Selection()


class SharedSinkModel(RuleBasedStateMachine):
    @initialize(configuration=CONFIGURATIONS, batch_rows=st.integers(1, 3))
    def start(self, configuration: dict[str, str], batch_rows: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.scripts = {name: Script(deletes="remove", batch_rows=batch_rows) for name in FILES}
        for source, partitions in FILES.items():
            for partition in partitions:
                self.scripts[source].write(partition, [])
        self.configuration = configuration
        self.service: dict[str, str] = {}
        self.claims: list[Claim] = []
        self.open()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.runner.run(work)

    def open(self) -> None:
        self.mirror = SqliteMirror.open(self.folder / "state.db")
        self.mirror.intake.activate(list(self.configuration), sources=self.configuration)
        self.readers = {name: self.reader(name) for name in self.configuration}

    def reader(self, name: str) -> Reader:
        connector = ScriptedConnector(self.scripts[self.configuration[name]])
        return Reader(
            pipeline=name, connector=connector, mapping=MAPPING, sink=SINK, mirror=self.mirror.intake,
            emit=lambda event: None,
        )  # fmt: skip

    def sink_id(self) -> int | None:
        lanes = self.run(self.mirror.delivery.lanes())
        return lanes[0].id if lanes else None

    # ------------------------------------------------------------------------------------------------ the sources

    @rule(source=st.sampled_from(sorted(FILES)), which=st.integers(0, 1), rows=ROWS, read=st.booleans())
    def save(self, source: str, which: int, rows: list[dict[str, str | None]], read: bool) -> None:
        partition = FILES[source][which % len(FILES[source])]
        self.scripts[source].write(partition, rows)
        for name in [name for name, one in self.configuration.items() if one == source and read]:
            self.read(name)

    @rule(key=KEYS, places=st.permutations([(s, p) for s, names in FILES.items() for p in names]), order=st.booleans())
    def move_a_row(self, key: str, places: list[tuple[str, str]], order: bool) -> None:
        """Move the rows of a key from one file to another; either file is saved and read first."""
        (giver, given), (taker, taken) = places[:2]
        before, after = self.scripts[giver].contents[given].rows, self.scripts[taker].contents[taken].rows
        moved = [row for row in before if row["k"] == key]
        saved = [
            (giver, given, [row for row in before if row["k"] != key]),
            (taker, taken, [*after, *moved]),
        ]
        for source, partition, rows in saved if order else reversed(saved):
            self.save(source, FILES[source].index(partition), rows, read=True)

    @rule(name=st.sampled_from(PIPELINES))
    def read(self, name: str) -> None:
        if name in self.readers:
            report = self.readers[name].read_pass()
            assert not report.broken
            self.readers[name].acknowledge_partitions()

    # ------------------------------------------------------------------------------------------ the configuration

    @rule(configuration=CONFIGURATIONS)
    def reload(self, configuration: dict[str, str]) -> None:
        former, self.configuration = self.configuration, configuration
        ended = [name for name, source in former.items() if configuration.get(name) != source]
        self.mirror.intake.reconfigure(list(configuration), sources=configuration, ended=ended)
        self.readers = {
            name: self.readers[name] if former.get(name) == source else self.reader(name)
            for name, source in configuration.items()
        }

    @rule(configuration=CONFIGURATIONS)
    def restart_with(self, configuration: dict[str, str]) -> None:
        self.configuration = configuration
        self.crash()

    @rule()
    def crash(self) -> None:
        self.mirror.close()
        self.claims.clear()
        self.open()

    # ------------------------------------------------------------------------------------------------ the service

    def claim(self, limit: int) -> Claim | None:
        sink = self.sink_id()
        return self.run(self.mirror.delivery.claim(sink, max_items=limit, max_bytes=10_000)) if sink else None

    def apply(self, claim: Claim) -> list[str]:
        items = [item for part in claim.parts for item in json.loads(part.body)]
        for item in items:
            if item.get("delete"):
                self.service.pop(item["key"], None)
            else:
                self.service[item["key"]] = item["value"]
        return [item["key"] for item in items]

    @rule(limit=st.integers(1, 3))
    def send(self, limit: int) -> None:
        if (claim := self.claim(limit)) is not None:
            self.claims.append(claim)

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 9), is_lost=st.booleans())
    def receive_the_response(self, which: int, is_lost: bool) -> None:
        claim = self.claims.pop(which % len(self.claims))
        self.apply(claim)
        self.run(self.mirror.delivery.release(claim) if is_lost else self.mirror.delivery.acknowledge(claim))

    @precondition(lambda self: self.claims)
    @rule(which=st.integers(0, 9))
    def refuse(self, which: int) -> None:
        claim = self.claims.pop(which % len(self.claims))
        keys = [item["key"] for part in claim.parts for item in json.loads(part.body)]
        rejected = [RejectedEntry(key=key, reason="The service rejects it.", status=422) for key in keys]
        self.run(self.mirror.delivery.acknowledge_some(claim, delivered=[], rejected=rejected))
        self.run(self.mirror.delivery.release(claim))

    # --------------------------------------------------------------------------------------------------- at rest

    def named(self) -> dict[str, dict[tuple[str, str], str]]:
        """Return by key the values that configured sources name, each by its pipeline and partition."""
        found: dict[str, dict[tuple[str, str], str]] = {}
        for name, source in self.configuration.items():
            for partition, content in self.scripts[source].contents.items():
                for row in content.rows:
                    found.setdefault(str(row["k"]), {})[name, partition] = str(row["v"])
        return found

    @rule()
    def rest(self) -> None:
        """Read everything, deliver everything, remove what no source explains, and compare."""
        while self.claims:
            self.receive_the_response(0, is_lost=False)
        for _ in range(2):
            for name in self.configuration:
                self.read(name)
        self.drain()
        self.compare_keys()
        self.run(self.mirror.rejected.retry(EVERYTHING))
        for name in self.configuration:
            self.read(name)
        self.drain()
        self.sweep()
        self.compare_keys()
        self.compare_values_and_conflicts()

    def drain(self) -> None:
        while (claim := self.claim(2)) is not None:
            self.apply(claim)
            self.run(self.mirror.delivery.acknowledge(claim))
        assert self.mirror.status.pending() == 0

    def sweep(self) -> None:
        sink = self.sink_id()
        if sink is None:
            return
        check = self.run(self.mirror.drift.begin_check(sink))
        content = {"key": list(self.service), "value": list(self.service.values())}
        schema = {"key": pl.String, "value": pl.String}
        shown = pl.DataFrame(content, schema=schema).with_columns(pl.lit("scalar").alias("data_type"))
        self.run(self.mirror.drift.show(check, shown))
        status = self.run(self.mirror.drift.end_check(check, unexplained="remove"))
        assert status.found == 0, "the mirror knows what the service has"
        self.drain()
        assert set(self.service) == set(self.named()), "exactly the keys that a source names"

    def compare_keys(self) -> None:
        refused = {one.key for one in self.mirror.status.rejections(limit=100) if one.subject == "entry"}
        assert set(self.named()) <= set(self.service) | refused, "an entry is lost that a source names"

    def compare_values_and_conflicts(self) -> None:
        conflicts = self.mirror.status.rejections(limit=100)
        assert all(one.subject == "conflict" for one in conflicts)
        for key, values in self.named().items():
            assert self.service[key] in values.values(), key
            (origin,) = self.mirror.status.origins(key)
            assert values[origin.pipeline, origin.partition] == self.service[key] == origin.value
            others = {place for place in values if place[0] != origin.pipeline}
            of_key = [one for one in conflicts if one.key == key]
            assert {(one.pipeline, one.partition) for one in of_key} == others, "a conflict for each other pipeline"
            for one in of_key:
                assert re.findall(r"The value of '(\w+)' is kept", one.reason) == [origin.pipeline], one.reason
        assert {one.key for one in conflicts} <= set(self.named())

    def teardown(self) -> None:
        if not hasattr(self, "mirror"):
            return
        try:
            self.rest()
        finally:
            self.mirror.close()
            self.runner.close()
            shutil.rmtree(self.folder)


EXAMPLES = int(os.environ.get("INGESTD_MODEL_EXAMPLES", "60"))

SharedSinkModel.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSharedSinkModel = pytest.mark.slow(pytest.mark.timeout(600 + 5 * EXAMPLES)(SharedSinkModel.TestCase))


def test_a_conflict_ends_when_its_pipeline_reads_another_source_and_returns_with_the_source() -> None:
    state = SharedSinkModel()
    state.start(configuration={"p2": "c"}, batch_rows=1)
    for source in ("a", "c"):
        state.save(source=source, which=0, rows=[{"k": "x", "v": "1"}], read=False)
    state.rest()
    for source in ("a", "b", "a"):
        state.reload(configuration={"p1": source, "p3": "c"})
        state.rest()
        assert [one.pipeline for one in state.mirror.status.rejections(limit=9)] == (["p1"] if source == "a" else [])
    state.teardown()

"""The former values of entries equal lists in a dictionary, after any sequence of readings, deliveries and restarts."""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")
KEYS = ("a", "b", "c")
CONTENT = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["1", "2", "3", ""]), max_size=3)
Act: TypeAlias = dict[str, str] | Literal["deliver", "restart", "prune"]
ACTS = st.lists(st.one_of(CONTENT, st.sampled_from(["deliver", "restart", "prune"])), min_size=4, max_size=25)
Known: TypeAlias = tuple[str, str, str]
"""Value, ending and delivery."""
KEPT, MOST = 2, 4


class TracedPipeline:
    """A pipeline with a source in memory, and the expected former values of each key, the oldest first."""

    def __init__(self, folder: Path, deletes: Literal["keep", "remove"]) -> None:
        self.path = folder / "state.db"
        self.script = Script(deletes=deletes)
        self.time = 1_000.0
        self.present: dict[str, str] = {}
        self.delivered: set[str] = set()
        self.former: defaultdict[str, list[tuple[int, Known]]] = defaultdict(list)
        """Each with the hour in which it ended."""
        self.open()

    def open(self) -> None:
        self.mirror = SqliteMirror.open(self.path, now=lambda: self.time)
        self.mirror.intake.activate(["pipe"])
        self.reader = Reader(
            pipeline="pipe", connector=ScriptedConnector(self.script), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SINK, mirror=self.mirror.intake, emit=lambda event: None,
        )  # fmt: skip

    async def act(self, act: Act) -> None:
        self.time += 600
        if act == "restart":
            self.mirror.close()
            self.open()
        elif act == "prune":
            self.mirror.intake.pruner.prune()
        elif act == "deliver":
            await self.deliver()
        else:
            assert isinstance(act, dict)
            self.read(act)

    def read(self, content: dict[str, str]) -> None:
        self.script.write("p", [{"k": key, "v": value} for key, value in content.items()])
        self.reader.read_pass()
        for key, value in list(self.present.items()):
            state = "delivered" if key in self.delivered else "pending"
            if key in content and content[key] != value:
                self.former[key].append((int(self.time // 3600), (value, "replaced", state)))
                self.delivered.discard(key)
            elif key not in content and self.script.deletes == "remove":
                self.former[key].append((int(self.time // 3600), (value, "removed", state)))
                del self.present[key]
                self.delivered.discard(key)
        self.delivered -= content.keys() - self.present.keys()
        self.present.update(content)

    async def deliver(self) -> None:
        for lane in await self.mirror.delivery.lanes():
            while claim := await self.mirror.delivery.claim(lane.id, max_items=2, max_bytes=10_000):
                await self.mirror.delivery.acknowledge(claim)
        self.delivered = set(self.present)

    def check(self) -> None:
        for key in KEYS:
            found = self.mirror.status.former_values(key)
            ended = self.former[key]
            hourly = [
                one for place, (hour, one) in enumerate(ended[:-KEPT]) if not place or ended[place - 1][0] != hour
            ]
            expected = [*hourly, *(one for _, one in ended[-KEPT:])][-MOST:]
            assert [(one.value, one.ending, one.delivery) for one in reversed(found)] == expected
            assert all(one.read_at is not None and one.partition == "p" and one.run for one in found)
            assert all((one.delivered_at is not None) == (one.delivery == "delivered") for one in found)


@settings(suppress_health_check=list(HealthCheck))
@given(acts=ACTS, deletes=st.sampled_from(["keep", "remove"]))
def test_the_former_values_are_those_of_a_dictionary(acts: list[Act], deletes: Literal["keep", "remove"]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingestd.mirror.sqlite.entries.former_values.KEPT", KEPT)
        patch.setattr("ingestd.mirror.sqlite.entries.former_values.MOST", MOST)
        for bound in ("KEPT", "RUNS_KEPT", "RUNS_APART"):
            patch.setattr(f"ingestd.mirror.sqlite.runs.pruner.{bound}", 0)
        pipeline = TracedPipeline(Path(folder), deletes)
        try:
            with asyncio.Runner() as runner:
                for act in acts:
                    runner.run(pipeline.act(act))
                    pipeline.check()
        finally:
            pipeline.mirror.close()

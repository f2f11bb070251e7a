"""Keys and labels that differ only in their Unicode form are equal, as they are for the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.settings.notation import SinkNotation
from tests.support.scripted_source import Script, ScriptedConnector

SINK = SinkAddress(workspace="w", by="label", name="s")
FORMS = [("e\u0301", "\u00e9"), ("\u2126", "\u03a9"), ("A\u030a", "\u212b")]
"""Pairs of texts with the same NFC."""


class Flow:
    """A source, a mirror and a service that stores keys in NFC."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self.script = Script(deletes="remove", batch_rows=1)
        self.mirror = SqliteMirror.open(self.path)
        self.service: dict[str, str] = {}

    def read(self, *rows: tuple[str, str]) -> None:
        self.script.write("p", [{"k": key, "v": value} for key, value in rows])
        Reader(
            pipeline="pipe", connector=ScriptedConnector(self.script), sink=SINK, mirror=self.mirror.intake,
            mapping=Mapping([EntrySpec(key="{k}", value="{v}")]), emit=lambda event: None,
        ).read_pass()  # fmt: skip

    def deliver(self) -> None:
        for item in asyncio.run(self._items()):
            key = pl.Series([item["key"]]).str.normalize("NFC")[0]
            if item.get("delete"):
                self.service.pop(key)
            else:
                self.service[key] = item["value"]

    async def _items(self) -> list[dict[str, str]]:
        found = []
        (lane,) = await self.mirror.delivery.lanes()
        while (claim := await self.mirror.delivery.claim(lane.id, max_items=9, max_bytes=9_999)) is not None:
            found += [item for part in claim.parts for item in json.loads(part.body)]
            await self.mirror.delivery.acknowledge(claim)
        return found

    def notice(self) -> str:
        (pipeline,) = self.mirror.status.pipelines()
        return pipeline.notices[0].sentence if pipeline.notices else ""


@pytest.fixture
def flow(tmp_path: Path) -> Iterator[Flow]:
    flow = Flow(tmp_path)
    yield flow
    flow.mirror.close()


@pytest.mark.parametrize("forms", [*FORMS, *(pair[::-1] for pair in FORMS)])
def test_rows_with_two_forms_of_a_key_are_repeated_keys(flow: Flow, forms: tuple[str, str]) -> None:
    one, other = forms
    flow.read((one, "1"), (other, "2"), ("x", "3"))
    assert "has different values: '1' at p, row 2 and '2' at p, row 3; the last one is delivered" in flow.notice()
    flow.deliver()
    assert sorted(flow.service.values()) == ["2", "3"]
    flow.read((one, "1"), ("x", "3"))
    flow.deliver()
    assert sorted(flow.service.values()) == ["1", "3"], "the entry has the value of the row that is left"
    flow.read((other, "1"), ("x", "3"))
    flow.deliver()
    assert sorted(flow.service.values()) == ["1", "3"], "a change of form is no removal"
    flow.read(("x", "3"))
    flow.deliver()
    assert list(flow.service.values()) == ["3"]


def test_many_records_are_mapped_to_the_same_keys_as_few(flow: Flow) -> None:
    flow.read(*((f"{number}{FORMS[0][0]}", "1") for number in range(3)))
    mapping = Mapping([EntrySpec(key="{k}", value="1")])
    records = pl.DataFrame({"k": [f"{number}e\u0301" for number in range(300)]})
    numbers = pl.Series(range(300), dtype=pl.Int64)
    mapped = mapping.apply(records, numbers, mapping.row_hashes(records, {}), {})
    assert mapped.entries["key"].to_list() == [f"{number}\u00e9" for number in range(300)]
    flow.deliver()
    assert list(flow.service) == ["0\u00e9", "1\u00e9", "2\u00e9"]


def test_a_drift_check_finds_no_difference_of_form(flow: Flow) -> None:
    flow.read(("e\u0301", "1"))
    flow.deliver()

    async def check() -> int:
        (lane,) = await flow.mirror.delivery.lanes()
        number = await flow.mirror.drift.begin_check(lane.id)
        await flow.mirror.drift.show(number, pl.DataFrame({"key": ["\u00e9"], "value": ["1"], "data_type": ["scalar"]}))
        return (await flow.mirror.drift.end_check(number)).found

    assert asyncio.run(check()) == 0


def test_an_entry_and_its_rejection_are_found_by_any_form_of_the_key(flow: Flow) -> None:
    flow.mirror.intake.activate(["pipe", "other"])
    flow.read(("e\u0301", "1"))
    assert [one.key for one in flow.mirror.status.origins("\u00e9")] == ["\u00e9"]
    _read_other(flow, "\u00e9")
    assert flow.mirror.status.count(Selection(key="e\u0301*")) == 1


def test_both_forms_of_a_label_are_one_sink() -> None:
    one, other = (SinkNotation(workspace=form, label=form).address() for form in FORMS[0])
    assert one == other


def _read_other(flow: Flow, key: str) -> None:
    """Read a key with the value 2 in another pipeline."""
    other = Script()
    other.write("o", [{"k": key, "v": "2"}])
    Reader(
        pipeline="other", connector=ScriptedConnector(other), sink=SINK, mirror=flow.mirror.intake,
        mapping=Mapping([EntrySpec(key="{k}", value="{v}")]), emit=lambda event: None,
    ).read_pass()  # fmt: skip

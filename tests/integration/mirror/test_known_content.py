"""Repeated content is recognised and reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import ContentKnown

TEXT = "part,mass\nA,1\n"


class Reading:
    """Passes over a folder, and their events about known content."""

    def __init__(self, base: Path) -> None:
        self.drop = base / "drop"
        self.drop.mkdir()
        self._base = base
        self.mirror = SqliteMirror.open(base / "ingestd.db")
        self.mirror.intake.activate(["p"])
        self.events: list[Event] = []
        self._reader = self._new()

    def _new(self) -> Reader:
        options = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0})
        return Reader(
            pipeline="p",
            connector=DirectoryConnector(options, SourceContext(pipeline="p", base=self._base, now=lambda: 4e9)),
            mapping=Mapping([EntrySpec(key="{part}", value="{mass}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"),
            mirror=self.mirror.intake,
            emit=self.events.append,
        )

    def restart(self) -> None:
        self._reader = self._new()

    def known_content(self) -> list[str]:
        self.events.clear()
        self._reader.read_pass()
        return [event.sentence.partition(" 20")[0] for event in self.events if isinstance(event, ContentKnown)]


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    found = Reading(tmp_path)
    yield found
    found.mirror.close()


def test_known_content_is_reported_once_under_another_and_under_the_same_name(reading: Reading) -> None:
    path = reading.drop / "a.csv"
    path.write_text(TEXT)
    assert reading.known_content() == []
    (reading.drop / "b.csv").write_text(TEXT)
    assert reading.known_content() == ["b.csv has the content of a.csv, which was read"]
    os.utime(path, (5000, 5000))
    repeated = reading.known_content()
    assert len(repeated) == 1
    assert repeated[0].startswith("a.csv has the content")
    assert reading.known_content() == []
    reading.restart()
    assert reading.known_content() == []


@pytest.mark.parametrize("text", ["part,mass\nA,2\n", "part,mass\nA,1\nB,1\n"])
def test_new_content_under_a_known_name_is_new(reading: Reading, text: str) -> None:
    (reading.drop / "a.csv").write_text(TEXT)
    reading.known_content()
    (reading.drop / "a.csv").write_text(text)
    assert reading.known_content() == []
    (reading.drop / "a.csv").write_text(TEXT)
    assert reading.known_content() == ["a.csv has the content it had"]


def test_the_state_of_a_file_is_that_of_its_last_reading(reading: Reading) -> None:
    (reading.drop / "a.csv").write_text(TEXT)
    (reading.drop / "b.csv").write_text(TEXT)
    reading.known_content()
    (reading.drop / "c.csv").write_text("x\n1\n")
    reading.known_content()
    look = reading.mirror.status.history
    first, second, third = (look("p", name) for name in ("a.csv", "b.csv", "c.csv"))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.same_as, second.same_as, first.pending) == ("", "a.csv", 1)
    assert third.reading is None
    assert "There is no column 'part'" in third.failure
    assert look("p", "d.csv") is None

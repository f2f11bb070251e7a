"""The conformance suite of the SDK, and tests of status files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestd.sdk import SourceContext, SourceUnavailable
from ingestd.sdk.testing import ConnectorConformance, Rig
from instrument_status import InstrumentStatusConnector, InstrumentStatusOptions
from instrument_status.status_file import parse

OVEN = "# oven 3\nstate = heating\ntemperature [°C] = 180.50\nsetpoint [°C] = 200\n"


def connector_of(folder: Path, *, now: float = 4e9, **options: object) -> InstrumentStatusConnector:
    context = SourceContext(pipeline="lab", base=folder, now=lambda: now)
    return InstrumentStatusConnector(InstrumentStatusOptions.model_validate({"path": "lab"} | options), context)


class StatusRig(Rig):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "lab" / "oven-3.status"
        self.file.parent.mkdir()
        self.write(OVEN)

    def write(self, text: str) -> None:
        """Replace the file, as instruments do, so that a reader sees the old or the new content."""
        new = self.file.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.replace(self.file)

    def connector(self) -> InstrumentStatusConnector:
        return connector_of(self.folder)

    def add(self) -> None:
        self.write(self.file.read_text(encoding="utf-8") + "door = closed\n")

    def change(self) -> None:
        self.write(self.file.read_text(encoding="utf-8").replace("180.50", "181.00"))

    def remove(self) -> None:
        self.write(self.file.read_text(encoding="utf-8").replace("door = closed\n", ""))

    def broken(self) -> InstrumentStatusConnector:
        self.file.write_bytes(b"state = \xff\xfe\n")
        return self.connector()


class TestConformance(ConnectorConformance):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> StatusRig:
        return StatusRig(tmp_path)


def test_values_keep_their_text_and_units_are_a_separate_field() -> None:
    parsed = parse(OVEN)
    assert parsed.records == [
        {"name": "state", "value": "heating"},
        {"name": "temperature", "unit": "°C", "value": "180.50"},
        {"name": "setpoint", "unit": "°C", "value": "200"},
    ]
    assert parsed.positions == [2, 3, 4]


def test_a_line_of_another_form_and_a_repeated_name_are_rejected_and_the_others_are_read() -> None:
    parsed = parse("state = idle\nE-STOP!\nstate = heating\nempty =\n")
    assert [record["name"] for record in parsed.records] == ["state", "empty"]
    assert [(reject.position, reject.field) for reject in parsed.rejects] == [(2, ""), (3, "name")]
    assert "repeats the name 'state' of line 1" in parsed.rejects[1].reason


def test_a_file_is_read_once_its_modification_time_is_old_enough(tmp_path: Path) -> None:
    rig = StatusRig(tmp_path)
    os.utime(rig.file, (1000, 1000))
    early = connector_of(tmp_path, now=1001.5)
    assert list(early.partitions()) == []
    assert early.waiting() == 0.5
    late = connector_of(tmp_path, now=1002)
    assert [partition.name for partition in late.partitions()] == ["oven-3.status"]
    assert late.waiting() is None


def test_a_file_that_was_saved_again_with_the_same_content_is_unchanged(tmp_path: Path) -> None:
    rig = StatusRig(tmp_path)
    connector = rig.connector()
    (partition,) = connector.partitions()
    (first,) = connector.read(partition, None)
    rig.write(OVEN)
    (second,) = connector.read(partition, first.cursor)
    assert (second.unchanged, second.last, second.records.height) == (True, True, 0)


def test_a_missing_folder_is_unavailable_and_reported_by_verify(tmp_path: Path) -> None:
    connector = connector_of(tmp_path)
    with pytest.raises(SourceUnavailable, match="Create or mount the folder"):
        connector.partitions()
    assert [(step.name, step.outcome) for step in connector.verify()] == [("folder", "failed")]


def test_holds_follows_the_folder(tmp_path: Path) -> None:
    rig = StatusRig(tmp_path)
    assert rig.connector().holds("oven-3.status")
    rig.file.unlink()
    assert not rig.connector().holds("oven-3.status")

"""Rejected files that a person removes: their rejections are dropped, whatever a connector's look at one of them does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Cursor, Partition
from ingestd.intake import PassReport, Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import Batch, SourceBroken, SourceUnavailable
from ingestd.telemetry import Event
from ingestd.telemetry.catalogue.intake import AcknowledgementFailed
from ingestd.telemetry.catalogue.rejected import RejectionsDropped
from tests.support.scripted_source import Script, ScriptedConnector


class BrokenFolder(ScriptedConnector):
    """A folder with files that can't be read, and that is listed only as far as a file may have changed."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.asked: list[str] = []
        self.failures: dict[str, Exception] = {}
        self.is_known = False

    def partitions(self) -> list[Partition]:
        return [] if self.is_known else list(super().partitions())

    def read(self, partition: Partition, cursor: Cursor | None) -> Iterator[Batch]:  # noqa: ARG002 - no file is readable
        yield from ()
        raise SourceBroken(f"{partition.name} is not CSV.")

    def holds(self, name: str) -> bool:
        self.asked.append(name)
        if name in self.failures:
            raise self.failures[name]
        return name in self.script.contents


class RejectedFiles:
    """A pipeline with this number of rejected files: ``file 0`` and so on."""

    def __init__(self, path: Path, files: int) -> None:
        self.script = Script()
        self.names = [f"file {number}" for number in range(files)]
        for name in self.names:
            self.script.write(name, [{"k": "x", "v": "1"}])
        self.connector = BrokenFolder(self.script)
        self.events: list[Event] = []
        self.mirror = SqliteMirror.open(path / "state.db")
        self.reader = Reader(
            pipeline="p", connector=self.connector, mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"), mirror=self.mirror.intake, emit=self.events.append,
        )  # fmt: skip
        self.reader.read_pass()
        self.connector.is_known = True

    def remove(self, *names: str) -> PassReport:
        """Remove files, and read the source."""
        for name in names:
            self.script.take_away(name)
        self.connector.asked.clear()
        return self.reader.read_pass()

    @property
    def rejected(self) -> set[str]:
        return {name for _, name in self.mirror.intake.pruner.rejected_partitions("p")}

    def sentences(self, kind: type[AcknowledgementFailed]) -> list[str]:
        return [event.sentence for event in self.events if isinstance(event, kind)]


@pytest.fixture
def rejected_files(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RejectedFiles]:
    found = RejectedFiles(tmp_path, getattr(request, "param", 3))
    yield found
    found.mirror.close()


def test_an_exception_of_the_look_at_one_file_is_reported_once_and_the_others_are_looked_at(
    rejected_files: RejectedFiles,
) -> None:
    rejected_files.connector.failures["file 0"] = PermissionError("The share denies access to file 0.")
    reports = [rejected_files.remove("file 1"), rejected_files.remove()]
    assert [report.failure for report in reports] == ["", ""]
    assert rejected_files.rejected == {"file 0", "file 2"}
    assert rejected_files.sentences(AcknowledgementFailed) == ["The share denies access to file 0."]
    assert [notice.sentence for notice in rejected_files.reader.notices()] == ["The share denies access to file 0."]
    rejected_files.connector.failures.clear()
    rejected_files.remove("file 0")
    assert rejected_files.rejected == {"file 2"}
    assert rejected_files.reader.notices() == []


def test_a_source_that_is_away_does_not_show_that_a_file_was_removed(rejected_files: RejectedFiles) -> None:
    rejected_files.connector.failures = {name: SourceUnavailable("The share is away.") for name in rejected_files.names}
    report = rejected_files.remove("file 1")
    assert report.failure == ""
    assert rejected_files.rejected == set(rejected_files.names)
    assert rejected_files.connector.asked == ["file 0"]


def test_a_file_that_the_source_has_just_listed_is_not_looked_for(rejected_files: RejectedFiles) -> None:
    rejected_files.connector.is_known = False
    rejected_files.remove("file 1")
    assert rejected_files.connector.asked == ["file 1"]
    assert rejected_files.rejected == {"file 0", "file 2"}


@pytest.mark.parametrize("rejected_files", [120], indirect=True)
def test_each_pass_looks_for_some_of_many_files_until_all_were_looked_for(rejected_files: RejectedFiles) -> None:
    rejected_files.remove(*rejected_files.names[:10], "file 119")
    assert rejected_files.connector.asked == rejected_files.names[:60]
    rejected_files.remove()
    rejected_files.remove()
    assert rejected_files.connector.asked == rejected_files.names[110:]
    assert rejected_files.rejected == set(rejected_files.names[10:119])
    assert len([event for event in rejected_files.events if isinstance(event, RejectionsDropped)]) == 11
    rejected_files.remove("file 10")
    assert rejected_files.rejected == set(rejected_files.names[11:119])

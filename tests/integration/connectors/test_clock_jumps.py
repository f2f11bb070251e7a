"""The clock is set an hour forward or back while files become stable: nothing is read early, and nothing waits longer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from connectors.directory import DirectoryConnector
from connectors.file import FileConnector
from connectors.log import LogConnector
from ingestd.sdk import Batch, Connector, SourceContext

HOUR = 3600.0


class SetClock:
    """A clock that a test sets, and seconds that only pass."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.passed = 5_000.0

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds

    def context(self, folder: Path) -> SourceContext:
        return SourceContext(pipeline="t", base=folder, now=lambda: self.wall, steady=lambda: self.passed)

    def write(self, path: Path, text: str) -> None:
        """Write a file; its time is that of the clock."""
        path.write_text(text)
        os.utime(path, (self.wall, self.wall))


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def connect(kind: type[Connector], clock: SetClock, folder: Path, **options: object) -> Connector:
    model: type[BaseModel] = kind.Options
    return kind(model.model_validate(options), clock.context(folder))


def names(connector: Connector) -> list[str]:
    return [partition.name for partition in connector.partitions()]


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
@pytest.mark.parametrize("kind", ["directory", "file"])
def test_a_file_is_stable_after_its_seconds_whatever_the_clock_does(
    tmp_path: Path, clock: SetClock, kind: str, jump: float
) -> None:
    if kind == "directory":
        connector = connect(DirectoryConnector, clock, tmp_path, path=".", settle_seconds=10, pattern="*.csv")
    else:
        connector = connect(FileConnector, clock, tmp_path, path="a.csv", settle_seconds=10)
        clock.write(tmp_path / "a.csv", "k,v\nold,1\n")
    list(connector.partitions())
    clock.wait(1)
    clock.write(tmp_path / "a.csv", "k,v\nx,1\n")
    assert names(connector) == []
    clock.wait(4)
    clock.wall += jump
    assert names(connector) == []
    assert connector.waiting() == pytest.approx(6)
    clock.wait(6)
    assert names(connector) == ["a.csv"]


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_the_last_line_of_a_log_waits_for_its_seconds(tmp_path: Path, clock: SetClock, jump: float) -> None:
    connector = connect(LogConnector, clock, tmp_path, path=".", pattern="a.csv", idle_seconds=10)

    def read() -> list[str]:
        found: list[Batch] = []
        for partition in connector.partitions():
            found += [batch for batch in connector.read(partition, None) if isinstance(batch, Batch)]
        return [key for batch in found if batch.records.height for key in batch.records["k"].to_list()]

    clock.write(tmp_path / "a.csv", "k,v\nx,1\ny,2")
    assert read() == ["x"]
    clock.wait(4)
    clock.wall += jump
    assert read() == ["x"]
    assert connector.waiting() == pytest.approx(6)
    clock.wait(6)
    assert read() == ["x", "y"]

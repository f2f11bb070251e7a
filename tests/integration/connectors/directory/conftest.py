"""A drop folder, with a clock that tests set."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.sdk import Batch, Cursor, Partition, SourceContext
from tests.support.file_flow import FileFlow


class Drop:
    """A folder ``drop`` and connectors that read it, one for each simulated restart."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "drop"
        self.folder.mkdir()
        self.done = base / "done"
        self.now = 4_000_000_000.0  # long after every file was written

    def connector(self, **options: Any) -> DirectoryConnector:
        settings = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0} | options)
        return DirectoryConnector(settings, SourceContext(pipeline="test", base=self.base, now=lambda: self.now))

    def write(self, name: str, text: str = "part,mass\nA,0.10\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")
        return path


def names(connector: DirectoryConnector) -> list[str]:
    return [partition.name for partition in connector.partitions()]


def read(connector: DirectoryConnector, name: str, cursor: Cursor | None = None) -> list[Batch]:
    return list(connector.read(Partition(name=name), cursor))


@pytest.fixture
def drop(tmp_path: Path) -> Drop:
    return Drop(tmp_path)


@pytest.fixture
def ready_names() -> Callable[[DirectoryConnector], list[str]]:
    return names


@pytest.fixture
def read_all() -> Callable[..., list[Batch]]:
    return read


@pytest.fixture
def open_flow(tmp_path: Path) -> Iterator[Callable[..., FileFlow]]:
    """Return the complete path from the folder to the mirror; a further call with the same state is a restart."""
    flows: list[FileFlow] = []

    def opened(**options: Any) -> FileFlow:
        flows.append(FileFlow(tmp_path, **options))
        return flows[-1]

    yield opened
    for flow in flows:
        flow.close()

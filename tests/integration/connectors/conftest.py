"""Folders with files, and pipelines that read them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_flow import FileFlow
from tests.support.watched_files import Bench, Drop, Share


@pytest.fixture
def drop(tmp_path: Path) -> Drop:
    return Drop(tmp_path)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def share(tmp_path: Path) -> Share:
    return Share(tmp_path)


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

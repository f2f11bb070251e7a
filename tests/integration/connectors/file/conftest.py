"""A share with one file, and a clock that tests set."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from connectors.file import FileConnector, FileOptions
from ingestd.sdk import Batch, Cursor, Partition, SourceContext


class Share:
    """A folder ``share`` and connectors that read a file in it, one for each simulated restart."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "share"
        self.folder.mkdir()
        self.book = self.folder / "masses.xlsx"
        self.now = time.time() + 3600

    def connector(self, name: str = "masses.xlsx", **options: Any) -> FileConnector:
        settings = FileOptions.model_validate({"path": f"share/{name}", "settle_seconds": 0} | options)
        return FileConnector(settings, SourceContext(pipeline="test", base=self.base, now=lambda: self.now))

    def save(self, rows: list[list[Any]], path: Path | None = None) -> Path:
        """Save as an office program does: write a temporary file, then rename it; set the clock's time."""
        target, waiting = path or self.book, self.folder / "6A3F2100"
        book = Workbook()
        assert book.active is not None
        for row in rows:
            book.active.append(row)
        book.save(waiting)
        os.utime(waiting, (self.now, self.now))
        waiting.rename(target)
        return target


def read(connector: FileConnector, cursor: Cursor | None = None) -> list[Batch]:
    batches = []
    for partition in connector.partitions():
        batches += list(connector.read(partition, None if cursor is None else json.loads(json.dumps(cursor))))
    return batches


@pytest.fixture
def share(tmp_path: Path) -> Share:
    return Share(tmp_path)


@pytest.fixture
def read_all() -> Callable[..., list[Batch]]:
    return read


@pytest.fixture
def partition() -> Partition:
    return Partition(name="masses.xlsx")

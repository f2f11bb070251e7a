"""Folders into which tests write, with a clock that tests set, and connectors that read these folders."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from connectors.directory import DirectoryConnector, DirectoryOptions
from connectors.file import FileConnector, FileOptions
from connectors.log import LogConnector, LogOptions
from ingestd.sdk import Batch, Cursor, Partition, SourceContext
from ingestd.sdk.testing import acknowledgement


class Drop:
    """A folder ``drop``, and connectors that read it: a new connector for each simulated restart."""

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


def ready_names(connector: DirectoryConnector) -> list[str]:
    return [partition.name for partition in connector.partitions()]


def read_all(connector: DirectoryConnector, name: str, cursor: Cursor | None = None) -> list[Batch]:
    return list(connector.read(Partition(name=name), cursor))


def acknowledge(connector: DirectoryConnector, name: str, cursor: Cursor) -> None:
    connector.acknowledge(Partition(name=name), cursor, acknowledgement())


class Bench:
    """A folder ``bench``, and connectors that read it: a new one for each restart. ``reported``: sentences for operators."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "bench"
        self.folder.mkdir()
        self.now = time.time()
        self.reported: list[str] = []

    def connector(self, **options: Any) -> LogConnector:
        settings = LogOptions.model_validate({"path": "bench"} | options)
        context = SourceContext(pipeline="test", base=self.base, now=lambda: self.now, log=self.reported.append)
        return LogConnector(settings, context)

    def append(self, data: str | bytes, name: str = "run.csv") -> Path:
        path = self.folder / name
        with path.open("ab") as log:
            log.write(data.encode() if isinstance(data, str) else data)
        return path


class Reading:
    """The records of a log. Between readings, the cursor is stored as JSON, as in the state file."""

    def __init__(self, name: str = "run.csv") -> None:
        self.name = name
        self.cursor: Cursor | None = None
        self.batches: list[Batch] = []

    def look(self, connector: LogConnector) -> list[tuple[Any, ...]]:
        """Read the log; return position and fields of each new record."""
        connector.partitions()
        batches = list(connector.read(Partition(name=self.name, snapshot=False), self.cursor))
        self.batches += batches
        if batches:
            self.cursor = json.loads(json.dumps(batches[-1].cursor))
        return [
            (place, *row)
            for batch in batches
            for place, row in zip(batch.positions, batch.records.iter_rows(), strict=True)
        ]

    @property
    def rejects(self) -> list[tuple[int | str, str]]:
        return [(reject.position, reject.reason) for batch in self.batches for reject in batch.rejects]


class Share:
    """A folder ``share``, and connectors that read a file in it: a new connector for each simulated restart."""

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
        """Save a workbook as an office program does: write a temporary file, then rename it. Its time is ``now``."""
        target, waiting = path or self.book, self.folder / "6A3F2100"
        book = Workbook()
        assert book.active is not None
        for row in rows:
            book.active.append(row)
        book.save(waiting)
        os.utime(waiting, (self.now, self.now))
        waiting.rename(target)
        return target


def read_file(connector: FileConnector, cursor: Cursor | None = None) -> list[Batch]:
    batches = []
    for partition in connector.partitions():
        batches += list(connector.read(partition, None if cursor is None else json.loads(json.dumps(cursor))))
    return batches

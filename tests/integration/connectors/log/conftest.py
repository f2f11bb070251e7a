"""A folder of logs, with a clock that tests set."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.log import LogConnector, LogOptions
from ingestd.sdk import Batch, Cursor, Partition, SourceContext


class Bench:
    """A folder ``bench`` and connectors that read it, one for each simulated restart. ``reported``: sentences for operators."""

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
    """The records of one log; the cursor is stored between readings as in the daemon's state."""

    def __init__(self, name: str = "run.csv") -> None:
        self.name = name
        self.cursor: Cursor | None = None
        self.batches: list[Batch] = []

    def look(self, connector: LogConnector) -> list[tuple[Any, ...]]:
        """Return the new records: position and fields of each."""
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


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def reading() -> Callable[..., Reading]:
    return Reading

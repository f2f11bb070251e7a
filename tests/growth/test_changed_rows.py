"""The number of rows that are read again for ten changed ones does not grow with the file; nor do the written entries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.directory import DirectoryConnector, DirectoryOptions
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.core.record import Batch
from ingestd.intake import Reader
from ingestd.mirror.sqlite import SqliteMirror
from ingestd.sdk import SourceContext
from tests.support.work_counter import PEAK_RATIO

ROWS = 50_000
CHANGED = 10


def write(path: Path, rows: int, version: int) -> None:
    """Write ``rows`` rows, some of them with the version as their value."""
    values = dict.fromkeys(range(7, rows, rows // CHANGED), version)
    lines = (f'part-{number:08d},"{values.get(number, 0)}, {number}"\n' for number in range(rows))
    path.write_text("name,value\n" + "".join(lines))
    os.utime(path, (version, version))


def count_rows(folder: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many rows a pass over a file with ten changed rows reads."""
    (folder / "drop").mkdir(parents=True)
    options = DirectoryOptions.model_validate({"path": "drop", "settle_seconds": 0, "after": "keep"})
    connector = DirectoryConnector(options, SourceContext(pipeline="pipe", base=folder, now=lambda: 4e9))
    mirror = SqliteMirror.open(folder / "state.db")
    mirror.intake.activate(["pipe"])
    reader = Reader(
        pipeline="pipe", connector=connector, mapping=Mapping([EntrySpec(key="{name}", value="{value}")]),
        mirror=mirror.intake, sink=SinkAddress(workspace="w", by="label", name="s"), emit=lambda _: None, folder=folder,
    )  # fmt: skip
    write(folder / "drop" / "parts.csv", rows, 1)
    assert [one.created for one in reader.read_pass().read] == [rows]
    parsed: list[int] = []
    read = connector.read_sections

    def counted(*arguments: Any) -> Iterator[Batch]:
        for batch in read(*arguments):
            parsed.append(batch.records.height)
            yield batch

    monkeypatch.setattr(connector, "read_sections", counted)
    write(folder / "drop" / "parts.csv", rows, 2)
    (summary,) = reader.read_pass().read
    assert (summary.records, summary.updated) == (rows, CHANGED)
    mirror.close()
    return sum(parsed)


def test_ten_changed_rows_of_a_file_four_times_as_large_read_as_many_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = count_rows(tmp_path / "few", ROWS, monkeypatch)
    many = count_rows(tmp_path / "many", 4 * ROWS, monkeypatch)
    assert many <= PEAK_RATIO * few
    assert many < ROWS

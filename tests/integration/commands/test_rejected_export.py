"""The export of rejected records over a real state file that changes during the export."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from ingestd.commands.rejected_export import NOTES, ColumnAdded, ExportFormat, RejectionExport, SeveralTables
from ingestd.core.address import SinkAddress
from ingestd.core.mapping import EntrySpec, Mapping
from ingestd.intake import Reader
from ingestd.mirror.rejections import Selection
from ingestd.mirror.sqlite import SqliteMirror
from tests.support.scripted_source import Row, Script, ScriptedConnector

ALL = Selection()
COUNT = 2_500
"""Several pages of an export."""


class RejectingSource:
    """A source of unusable records, and the state file in which they are rejected."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mirror = SqliteMirror.open(path)
        self._read = 0

    def reject(self, rows: list[Row], *, pipeline: str = "pipe") -> None:
        """Read a new partition of records; those without ``k`` are rejected."""
        self._read += 1
        script = Script(batch_rows=500)
        script.write(f"{self._read}.csv", rows)
        Reader(
            pipeline=pipeline, connector=ScriptedConnector(script), mapping=Mapping([EntrySpec(key="{k}", value="{v}")]),
            sink=SinkAddress(workspace="w", by="label", name="s"), mirror=self.mirror.intake, emit=lambda event: None,
        ).read_pass()  # fmt: skip

    def export(self, form: ExportFormat = "csv", selection: Selection = ALL) -> RejectionExport:
        return RejectionExport(lambda: nullcontext(self.mirror.status), selection, form)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[RejectingSource]:
    made = RejectingSource(tmp_path / "state.db")
    yield made
    made.mirror.close()


def unusable(count: int, **more: str | None) -> list[Row]:
    return [{"k": "", "v": str(number), **more} for number in range(count)]


def text_pages(export: RejectionExport) -> Iterator[str]:
    return (text for text in export.pages() if text)


def test_the_header_has_the_columns_of_every_page_in_the_order_of_their_first_record(source: RejectingSource) -> None:
    source.reject(unusable(COUNT, note="a"))
    odd = {'quo"ted': "1", "com,ma": "2", "nul\0": "=3", "": "4", "line\nbreak": None}
    source.reject([{"k": "", "odd": "5", "v": "6", **odd}])
    export = source.export()
    rows = list(csv.reader(io.StringIO("".join(export.pages()), newline="")))
    assert rows[0] == ["k", "v", "note", "odd", *odd, *NOTES]
    assert len(rows) == 1 + COUNT + 1
    assert rows[1][:10] == ["", "0", "a", "", "", "", "", "", "", "'k' is empty; the key '{k}' needs it."]
    assert rows[-1][:9] == ["", "6", "", "5", "1", "2", "=3", "4", ""]
    assert (export.written, export.without_record) == (COUNT + 1, 0)


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_what_is_rejected_during_an_export_is_not_in_it(source: RejectingSource, form: ExportFormat) -> None:
    source.reject(unusable(COUNT))
    export = source.export(form)
    found = []
    for number, text in enumerate(text_pages(export)):
        found.append(text)
        if number < 4:  # an export that followed the state file would be one page longer for each
            source.reject(unusable(1_000))
    assert export.written == COUNT
    assert "".join(found).count("1.csv") == COUNT
    assert source.mirror.status.count(ALL) > COUNT


def test_what_is_dropped_during_an_export_is_not_in_later_pages(source: RejectingSource) -> None:
    source.reject(unusable(COUNT))
    export = source.export("ndjson")
    pages = text_pages(export)
    first = next(pages).splitlines()
    dropped = json.loads(first[-1])["_number"] + 1
    asyncio.run(source.mirror.rejected.drop(Selection(ids=(dropped,))))
    rest = "".join(pages).splitlines()
    assert len(first) + len(rest) == export.written == COUNT - 1
    assert dropped not in {json.loads(line)["_number"] for line in rest}


def test_between_two_pages_nothing_keeps_the_log_of_the_state_file(source: RejectingSource) -> None:
    source.reject(unusable(COUNT))
    pages = text_pages(source.export())
    next(pages)
    next(pages)
    source.reject(unusable(1_000))
    with closing(sqlite3.connect(source.path)) as connection:
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert not busy
    assert source.path.with_name("state.db-wal").stat().st_size == 0
    assert next(pages)


def test_a_column_that_appears_during_an_export_ends_it_with_a_sentence(source: RejectingSource) -> None:
    source.reject(unusable(COUNT))
    pages = text_pages(source.export())
    next(pages)
    with closing(sqlite3.connect(source.path)) as connection, connection:
        connection.execute("UPDATE rejected SET record = ? WHERE id = ?", (json.dumps({"late": "1"}), COUNT))
    with pytest.raises(ColumnAdded, match=r"1\.csv, row \d+ was rejected again .* column 'late'.*repeat it"):
        list(pages)


def test_records_of_several_pipelines_are_refused_before_the_first_line_of_a_table(source: RejectingSource) -> None:
    source.reject(unusable(COUNT), pipeline="one")
    source.reject(unusable(1), pipeline="two")
    with pytest.raises(SeveralTables, match="2 pipelines: one, two"):
        next(text_pages(source.export()))
    assert "".join(source.export(selection=Selection(pipeline="two")).pages()).count("\r\n") == 2
    assert "".join(source.export("ndjson").pages()).count("\n") == COUNT + 1

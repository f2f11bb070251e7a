"""Arrow files and streams: no batch is lost silently, and a column that can't be read costs nothing but itself."""

from __future__ import annotations

import io
import re
import struct
from typing import Any

import polars as pl
import pytest

from connectors.formats.columnar import Arrow, arrow_file, typed_columns
from ingestd.sdk import NOTICE, SourceBroken
from tests.support.format_records import parse, parser_sentence, positions
from tests.support.format_records import rows as rows_of

FRAME = pl.DataFrame({"a": [1, 2, 3, 4], "b": ["w", "x", "y", "z"], "c": ["red", "blue", "red", "red"]})
END = b"\xff\xff\xff\xff\0\0\0\0"
ROWS = [("1", "w", "red"), ("2", "x", "blue"), ("3", "y", "red"), ("4", "z", "red")]


def arrow(*, stream: bool, compression: Any = "uncompressed") -> bytes:
    """Return a file or stream of two batches, with a dictionary."""
    out = io.BytesIO()
    frame = FRAME.with_columns(pl.col("c").cast(pl.Categorical))
    if stream:
        frame.write_ipc_stream(out, compression=compression)
    else:
        frame.write_ipc(out, compression=compression, record_batch_size=2)
    return out.getvalue()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("rows", [1, 1000])
def test_files_and_streams_are_read_by_parts_of_any_size(
    stream: bool, compression: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_columns, "ROWS", rows)
    chunks = parse(Arrow(), arrow(stream=stream, compression=compression))
    assert rows_of(chunks) == ROWS
    assert positions(chunks) == [1, 2, 3, 4]


def test_a_stream_without_the_mark_of_its_end_is_read_with_a_notice() -> None:
    whole = arrow(stream=True)
    assert whole.endswith(END)
    chunks = parse(Arrow(), whole.removesuffix(END))
    assert rows_of(chunks) == ROWS
    assert chunks[-1].facts[NOTICE] == ("The stream has no mark of its end, so it may be incomplete.")
    assert NOTICE not in parse(Arrow(), whole)[-1].facts


def test_two_streams_in_one_file_are_rejected() -> None:
    whole = arrow(stream=True)
    assert parser_sentence(Arrow(), whole + whole) == "a can't be read as Arrow: it has data after the mark of its end."


@pytest.mark.parametrize("stream", [True, False])
def test_a_file_that_was_cut_is_rejected_or_flagged_wherever_it_was_cut(stream: bool) -> None:
    whole = arrow(stream=stream)
    for end in range(0, len(whole) - 1, 7):
        try:
            chunks = parse(Arrow(), whole[:end])
        except SourceBroken:
            continue
        assert stream
        assert all(NOTICE in one.facts for one in chunks), end


def test_a_batch_that_the_footer_does_not_list_rejects_the_file() -> None:
    data = arrow(stream=False)
    blocks = 2
    at = data.rindex(struct.pack("<I", blocks), 0, len(data) - 10)  # the length of the list of batches
    fewer = data[:at] + struct.pack("<I", blocks - 1) + data[at + 4 :]
    assert re.fullmatch(
        r"a can't be read as Arrow: its footer (lists fewer batches than the file has|does not match its batches)\.",
        parser_sentence(Arrow(), fewer),
    )


def test_a_batch_with_another_number_of_rows_than_a_column_costs_the_column() -> None:
    data = bytearray(arrow(stream=True))
    [part] = arrow_file.ArrowFile(io.BytesIO(data)).parts()
    [batch] = part.batches
    nodes, _ = batch.header.vector(1, 16)
    at = batch.body_start - len(batch.metadata) + nodes + 16  # the second column
    data[at : at + 8] = struct.pack("<q", 5)
    [found] = parse(Arrow(), bytes(data))
    assert found.records.rows() == [(one[0], one[2]) for one in ROWS]
    assert [(one.name, one.reason) for one in found.unreadable] == [("b", "it has 5 values for 4 rows")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it begins neither as a file nor as a stream; it is damaged or of another format"),
        (b"FEA1" + bytes(20), "it is of version 1 of Feather, which is not supported. Save it as Feather 2"),
        (b"ARROW1\0\0ARROW1", "it is too short for an Arrow file"),
        (arrow(stream=False)[:-1], "it does not end with ARROW1; it is incomplete"),
        (arrow(stream=False)[:-10] + b"\xff\xff\xff\x7fARROW1", "its footer is longer than the file"),
        (END, "it begins neither as a file nor as a stream; it is damaged or of another format"),
    ],
)
def test_a_file_that_is_no_arrow_is_rejected_with_the_reason(data: bytes, why: str) -> None:
    assert parser_sentence(Arrow(), data) == f"a can't be read as Arrow: {why}."


def test_instants_that_have_no_text_reject_their_rows_only() -> None:
    out = io.BytesIO()
    pl.DataFrame({"t": [0, 2**62, None]}, schema={"t": pl.Int64}).cast(pl.Datetime("ms")).write_ipc(out)
    [found] = parse(Arrow(), out.getvalue())
    assert found.records["t"].to_list() == ["1970-01-01T00:00:00", None, None]
    assert [(one.name, one.rows) for one in found.unreadable] == [("t", (1,))]

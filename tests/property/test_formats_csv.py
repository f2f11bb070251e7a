"""The CSV reader compared with Python's csv module, at every block size."""

import contextlib
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connectors.formats.csv.dialect import COMMA, Dialect, Layout
from connectors.formats.csv.fast import end_of_last_record, read_fast
from connectors.formats.csv.reader import read_csv
from connectors.formats.csv.scanner import RecordScanner
from connectors.formats.csv.tolerant import iter_records
from ingestd.sdk import Position, SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk, RecordLocation
from tests.support.format_records import positions
from tests.support.format_records import rejects as rejects_of
from tests.support.format_records import rows as rows_of

FIRST_ROW = Layout(header_row=1)
NASTY = st.text(alphabet='ab,"\n\r\t é€0.', max_size=60)
CELLS = st.text(alphabet=st.sampled_from('a0.,"\n\r é€ \t\ufeff'), max_size=8)
PLAIN_CELLS = st.text(alphabet=st.sampled_from('a0.," é-'), max_size=8)


def as_python_reads(body: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(body, newline="")))


def read_whole(data: bytes, block_bytes: int, record_bytes: int = 2**20, **options: Any) -> list[RecordChunk]:
    file = io.BytesIO(data)
    sizes: Any = {"block_bytes": block_bytes, "record_bytes": record_bytes}
    return list(read_csv(file, "x.csv", dialect=COMMA, encoding="utf-8", **sizes, **options))


def records(chunks: Sequence[RecordChunk]) -> list[tuple[Position, tuple[str | None, ...]]]:
    return list(zip(positions(chunks), rows_of(chunks), strict=True))


@dataclass
class StrictRecord:
    """A record by RFC 4180, with the line ends and plain quotes that docs/formats.md additionally permits."""

    fields: list[str] = field(default_factory=list)
    lines: int = 1
    sentence: str = ""


def strictly_read(body: str) -> list[StrictRecord]:
    """Read character by character. A quote inside an unquoted field is text; nothing may follow a closing quote."""
    found: list[StrictRecord] = []
    at = 0
    while at < len(body):
        begin, record = at, StrictRecord()
        at = _read_record(body, at, record)
        raw = body[begin:at]
        record.lines = len(raw.splitlines())
        if not raw.strip("\r\n"):
            record.fields = []
        found.append(record)
    return found


def _read_record(body: str, at: int, record: StrictRecord) -> int:
    field, state = "", "start"
    while at < len(body):
        mark, at = body[at], at + 1
        if state == "quoted":
            field, state = (field, "closed") if mark == '"' else (field + mark, "quoted")
        elif mark == "," or mark in "\r\n":
            record.fields.append(field)
            field, state = "", "start"
            if mark != ",":
                return at + body.startswith("\r\n", at - 1)
        elif mark == '"' and state in {"start", "closed"}:
            field, state = field + ('"' if state == "closed" else ""), "quoted"
        else:
            record.sentence = "text after a closing quote" if state == "closed" else record.sentence
            field, state = field + mark, "plain"
    record.fields.append(field)
    record.sentence = "opens a quote that is not closed" if state == "quoted" else record.sentence
    return at


def check_against_strict_reader(body: str, columns: int, block_bytes: int) -> None:
    names = [f"c{number}" for number in range(columns)]
    header = ",".join(names) + "\n"
    data = (header + body).encode()
    chunks = read_whole(data, block_bytes)
    expected = [(row, record) for row, record in enumerate(strictly_read(body), start=2) if record.fields]
    good = [(row, record) for row, record in expected if not record.sentence and len(record.fields) == columns]
    rejects = rejects_of(chunks)
    assert all(chunk.header for chunk in chunks)
    assert records(chunks) == [(row, tuple(record.fields)) for row, record in good]
    assert list(rejects) == [row for row, record in expected if (row, record) not in good]
    for row, record in expected:
        if record.sentence:
            assert record.sentence in rejects[row]
            lines = record.lines - 1
            assert ("it spans" in rejects[row]) == (lines > 0)
            assert not lines or f"it spans {lines} more line" in rejects[row]
    assert chunks[-1].end.offset == len(data)


@given(body=NASTY, columns=st.integers(1, 3), block_bytes=st.integers(1, 64))
@example(body='5" pipe,b\n"x\ny",2\n', columns=2, block_bytes=16)
@example(body='a,"b', columns=2, block_bytes=16)
@example(body='a,"b\n', columns=2, block_bytes=16)
@example(body='\n\n"a""\n",b\r\n\r\nx,y\r', columns=2, block_bytes=7)
@example(body='"a"b,c\n', columns=2, block_bytes=64)
@example(body='""\n', columns=1, block_bytes=64)
@example(body="a,b,\n", columns=2, block_bytes=64)
@example(body="a\nb,c,d\n", columns=2, block_bytes=64)
@example(body='2,"0.7,Nut,"old, worn, bent"\n', columns=4, block_bytes=64)
@example(body='"1"2,x\n', columns=2, block_bytes=64)
@example(body='a,"b\nc,d\ne,"f",g\n', columns=2, block_bytes=64)
def test_any_text_is_read_as_a_strict_reader_reads_it(body: str, columns: int, block_bytes: int) -> None:
    check_against_strict_reader(body, columns, block_bytes)


@given(
    rows=st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=12)
    ),
    block_bytes=st.integers(16, 64),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_output_of_the_csv_module_is_read_back(
    rows: list[list[str]], block_bytes: int, end: str, quoting: Literal[1, 2]
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=quoting).writerows(rows)
    names = [f"c{number}" for number in range(len(rows[0]))]
    data = (",".join(names) + end + out.getvalue()).encode()
    assert [row for _, row in records(read_whole(data, block_bytes))] == [tuple(row) for row in rows]


@given(body=NASTY.filter(bool), columns=st.integers(1, 3))
@example(body='a,""\n"","q""q"\n', columns=2)
@example(body="\ufeffa,b\n", columns=2)
@example(body="a,b,\nc\n", columns=2)
@example(body="a,b,c\nd\n", columns=2)
def test_a_block_on_the_fast_path_is_read_as_by_the_csv_module(body: str, columns: int) -> None:
    frame = read_fast(body.encode(), [f"c{number}" for number in range(columns)])
    if frame is not None:
        assert [list(row) for row in frame.rows()] == as_python_reads(body)
        assert [record.sentence for record in strictly_read(body)] == [""] * frame.height


@given(
    body=NASTY.filter(bool),
    columns=st.integers(1, 3),
    delimiter=st.sampled_from(";\t|~ "),
    quote=st.sampled_from(["'", "$", ""]),
)
@example(body='a,""\n"","q""q"\n', columns=2, delimiter=";", quote="'")
def test_every_dialect_is_read_as_by_the_csv_module(body: str, columns: int, delimiter: str, quote: str) -> None:
    body = body.replace(delimiter, "x").translate({ord(","): delimiter, ord('"'): quote or '"'})
    frame = read_fast(
        body.encode(), [f"c{number}" for number in range(columns)], Dialect(delimiter=delimiter, quote=quote)
    )
    quoting = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    if frame is not None:
        expected = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, **quoting)
        assert [list(row) for row in frame.rows()] == list(expected)


@given(
    rows=st.integers(2, 4).flatmap(
        lambda n: st.lists(st.lists(PLAIN_CELLS, min_size=n, max_size=n), min_size=1, max_size=12)
    ),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_the_fast_path_accepts_every_clean_block(rows: list[list[str]], end: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end).writerows(rows)
    frame = read_fast(out.getvalue().encode(), [f"c{number}" for number in range(len(rows[0]))])
    assert frame is not None
    assert [list(row) for row in frame.rows()] == rows


@given(rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=12), cut=st.integers(0, 100))
def test_a_clean_buffer_is_cut_between_records_wherever_it_ends(rows: list[list[str]], cut: int) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = out.getvalue().encode()
    ends = {0} | {end for _, _, end in iter_records(data, final=True)}
    end = end_of_last_record(data[:cut])
    assert end in ends
    assert not [other for other in ends if end < other <= min(cut, len(data))]


@given(body=NASTY, size=st.integers(1, 9))
def test_the_scanner_ends_a_record_where_the_csv_module_does(body: str, size: int) -> None:
    data = body.encode() + b"\n"
    whole = [end for _, _, end in iter_records(data, final=False)]
    scanner, end = RecordScanner(), None
    for at in range(0, len(data), size):
        found = scanner.feed(data[at : at + size])
        if found is not None:
            end = at + found
            break
    assert end == (whole[0] if whole else None)


@given(body=NASTY, block_bytes=st.integers(1, 32), which=st.integers(0, 50))
def test_reading_that_resumes_after_any_chunk_gives_the_rest(body: str, block_bytes: int, which: int) -> None:
    data = ("a,b\n" + body).encode()
    chunks = read_whole(data, block_bytes)
    done, rest = chunks[: which % len(chunks) + 1], chunks[which % len(chunks) + 1 :]
    again = read_whole(data, block_bytes, layout=FIRST_ROW, start=done[-1].end)
    assert records(again) == records(rest)
    assert list(rejects_of(again)) == list(rejects_of(rest))


@given(data=st.binary(max_size=80), block_bytes=st.integers(1, 32))
def test_any_bytes_give_records_rejects_or_one_sentence(data: bytes, block_bytes: int) -> None:
    chunks: list[RecordChunk] = []
    with contextlib.suppress(SourceBroken):
        chunks = read_whole(data, block_bytes)
    if not chunks:
        with pytest.raises(SourceBroken, match=r"^x\.csv"):
            read_whole(data, block_bytes)
        return
    for chunk in chunks:
        assert chunk.records.height == len(chunk.positions)
        for reject in chunk.rejects:
            assert all(text.encode() is not None for text in reject.record.values() if text is not None)
    assert chunks[-1].end.offset == len(data)


@given(body=NASTY, block_bytes=st.integers(1, 24), record_bytes=st.integers(8, 24))
def test_a_record_beyond_the_limit_is_rejected_and_other_records_are_read(
    body: str, block_bytes: int, record_bytes: int
) -> None:
    data = ("a,b\n" + body).encode()
    chunks = read_whole(data, block_bytes, record_bytes)
    raw = list(iter_records(data[4:], final=True))
    expected = [(row, end - start) for row, (fields, start, end) in enumerate(raw, start=2) if fields]
    too_large = [row for row, size in expected if size > record_bytes]
    rejected = rejects_of(chunks)
    read = {row for row, _ in records(chunks)}
    assert all("larger than" in rejected[row] for row in too_large)
    assert read | set(rejected) == {row for row, _ in expected}
    assert not read & set(rejected)
    assert chunks[-1].end == RecordLocation(offset=len(data), row=len(raw) + 1)


@pytest.mark.parametrize("block_bytes", [16, 64, 4096])
def test_the_bytes_of_a_byte_order_mark_are_no_part_of_the_first_name(block_bytes: int) -> None:
    chunks = read_whole(b"\xef\xbb\xbfa,b\n1,2\n", block_bytes)
    assert chunks[0].records.columns == ["a", "b"]
    assert records(chunks) == [(2, ("1", "2"))]
    assert chunks[-1].end.offset == 11

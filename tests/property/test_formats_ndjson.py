"""The NDJSON reader compared with Python's json module, with the characters of every number kept."""

import io
import json
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from connectors.formats.ndjson.exact import LineUnreadable, parse_record
from connectors.formats.ndjson.fast import may_hold_minus_zero, read_flat
from connectors.formats.ndjson.reader import read_ndjson
from ingestd.sdk import SourceBroken
from ingestd.sdk.formats.record_chunk import RecordChunk
from tests.support.format_records import located, positions, rejects

NAMES = st.sampled_from(["a", "b", "é", "long name", "n"])
NUMBERS = st.sampled_from(
    ["0", "-0", "0.10", "1e-7", "1E400", "-12", "9" * 40, "9223372036854775808", "-0.0", "1.0e+5"]
)
SCALARS = st.one_of(
    NUMBERS,
    st.sampled_from(["true", "false", "null"]),
    st.text(max_size=6).map(json.dumps),
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)),
)
ARRAYS = st.lists(NUMBERS, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")


def as_object(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.dictionaries(NAMES, values, min_size=1, max_size=4).map(
        lambda fields: "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items()) + "}"
    )


FLAT = as_object(SCALARS)
NESTED = as_object(st.one_of(SCALARS, ARRAYS, FLAT, as_object(FLAT)))


class Source(str):
    """A number as the file writes it."""

    __slots__ = ()


def expected(line: str) -> dict[str, str | None]:
    value = json.loads(line, parse_float=Source, parse_int=Source)
    return dict(flat(value, ""))


def flat(value: Mapping[str, Any], prefix: str) -> Any:
    for name, item in value.items():
        match item:
            case dict():
                yield from flat(item, f"{prefix}{name}.")
            case bool():
                yield prefix + name, "true" if item else "false"
            case list():
                yield prefix + name, "[" + ", ".join(item) + "]"
            case _:
                yield prefix + name, item


def read_whole(
    data: bytes, block_bytes: int = 2**20, record_bytes: int = 2**20, cells: int = 10**6
) -> list[RecordChunk]:
    source = io.BytesIO(data)
    return list(
        read_ndjson(
            source, "x.ndjson", encoding="utf-8", block_bytes=block_bytes, record_bytes=record_bytes, cells=cells
        )
    )


def present(record: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in record.items() if value is not None}


@given(
    lines=st.lists(st.one_of(FLAT, NESTED), min_size=1, max_size=8),
    block_bytes=st.integers(1, 64),
    cells=st.sampled_from([1, 4, 10**6]),
    end=st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]),
)
def test_values_are_the_characters_of_the_source(lines: list[str], block_bytes: int, cells: int, end: str) -> None:
    data = end.join(lines).encode()
    chunks = read_whole(data, block_bytes, cells=cells)
    step = end.count("\n")
    assert not any(chunk.header for chunk in chunks)
    assert rejects(chunks) == {}
    assert located(chunks) == [(1 + step * i, present(expected(line))) for i, line in enumerate(lines)]
    assert all(dtype == pl.String for chunk in chunks for dtype in chunk.records.dtypes)
    assert chunks[-1].end.offset == len(data)


@given(lines=st.lists(FLAT, min_size=1, max_size=8))
@example(lines=['{"a": 1}', '{"a": "-0"}'])
@example(lines=['{"a": true}', '{"a": "true"}', '{"a": 12345678901234567890123}', '{"b": 1.50}'])
def test_the_fast_path_and_the_exact_one_agree(lines: list[str]) -> None:
    raw = [line.encode() for line in lines]
    if may_hold_minus_zero(b"\n".join(raw)):
        return
    frame = read_flat(raw, 10**6)
    assert frame is not None
    assert [present(row) for row in frame.iter_rows(named=True)] == [present(parse_record(line)) for line in raw]


@given(
    lines=st.lists(st.one_of(FLAT, st.just("{"), st.just("[1]"), st.just("")), max_size=10), which=st.integers(0, 20)
)
def test_reading_that_resumes_after_any_chunk_gives_the_rest(lines: list[str], which: int) -> None:
    data = "\n".join(["{}", *lines]).encode()
    chunks = read_whole(data, 16, cells=4)
    at = which % len(chunks)
    again = list(read_ndjson(io.BytesIO(data), "x", encoding="utf-8", start=chunks[at].end, block_bytes=16))
    assert located(again) == located(chunks[at + 1 :])


@given(data=st.binary(max_size=80), block_bytes=st.integers(1, 32), record_bytes=st.integers(4, 40))
@example(data=b'{"a":1}' + b" " * 60 + b'\n{"a":2}', block_bytes=3, record_bytes=20)
def test_any_bytes_give_records_rejects_or_one_sentence(data: bytes, block_bytes: int, record_bytes: int) -> None:
    body = data.removeprefix(b"\xef\xbb\xbf")
    if not body:
        with pytest.raises(SourceBroken, match=r"^x\.ndjson"):
            read_whole(data, block_bytes, record_bytes)
        return
    chunks = read_whole(data, block_bytes, record_bytes)
    expected = [number for number, line in enumerate(body.split(b"\n"), start=1) if line.strip(b" \t\r\n")]
    assert sorted([*map(int, positions(chunks)), *map(int, rejects(chunks))]) == expected
    assert chunks[-1].end.offset == len(data)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"a": 01}', "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": "\\ud800"}', "half a surrogate pair"),
        (b'{"a": ["\\udfff"]}', "half a surrogate pair"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": ["\xff"]}', "not UTF-8"),
        (b'{"\xff": 1}', "not UTF-8"),
        (b"[1]", "not an object"),
        (b"{}", "without any field"),
        (b'{"a": {"b": 1}, "a.b": 2}', "two fields"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deeply"),
        (b'{"a": ' * 100_000 + b"1" + b"}" * 100_000, "too deeply"),
        (b'{"a": 1} {"a": 2}', "not valid JSON"),
    ],
)
def test_an_invalid_line_is_rejected_with_the_reason_and_other_lines_are_read(line: bytes, words: str) -> None:
    with pytest.raises(LineUnreadable, match=words):
        parse_record(line)
    (chunk,) = read_whole(b'{"a": 1}\n' + line + b'\n{"a": 3}\n')
    assert located([chunk]) == [(1, {"a": "1"}), (3, {"a": "3"})]
    (reject,) = chunk.rejects
    assert reject.position == 2
    assert reject.reason.startswith("Line 2 ")
    assert words in reject.reason
